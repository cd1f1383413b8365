package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

// A pair is a certificate and its private key, in PEM.
type pair struct {
	cert, key []byte
}

// An authority signs the certificates of one cluster. Every cluster has its own, so that the
// credentials of one are not valid for another.
type authority struct {
	pair
	parsed *x509.Certificate
	signer *ecdsa.PrivateKey
}

func newAuthority(name string) (*authority, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name + "-ca"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	signed, err := sign(template, template, key, key)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(signed.cert)
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	return &authority{pair: signed, parsed: parsed, signer: key}, nil
}

// serving issues the serving certificate of an API server on this machine.
func (a *authority) serving() (pair, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, net.IPv4(10, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// admin issues the certificate of a client with all permissions.
func (a *authority) admin() (pair, error) { return a.client("admin", "system:masters") }

func (a *authority) client(name string, groups ...string) (pair, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (a *authority) issue(template *x509.Certificate) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	return sign(template, a.parsed, key, a.signer)
}

func sign(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) (pair, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return pair{}, err
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().AddDate(1, 0, 0)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return pair{}, err
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return pair{}, err
	}
	return pair{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), keyPEM}, nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// newTokenKey creates the key that signs service account tokens. The pair's cert is the public
// key.
func newTokenKey() (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	private, err := encodeKey(key)
	if err != nil {
		return pair{}, err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return pair{}, err
	}
	return pair{pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), private}, nil
}
