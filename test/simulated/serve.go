package simulated

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// A place is the listener of a cluster, or of all.
type place struct {
	server  *http.Server
	address string
	ca      []byte // PEM
}

// Listen serves the cluster over HTTPS at its own port and with its own certificate, so that
// clients never share a connection between clusters, unless all are served at one port. It returns the configuration of a
// client. Fleet.Close ends it.
func (c *Cluster) Listen() (*rest.Config, error) {
	if c.fleet.options.OnePort {
		return c.fleet.listen(c.name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.place == nil {
		var err error
		if c.place, err = newPlace(c.name, c); err != nil {
			return nil, err
		}
	}
	return c.place.config(""), nil
}

// listen serves all clusters at one port. It returns the configuration of a client of one of them.
func (f *Fleet) listen(cluster string) (*rest.Config, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.place == nil {
		var err error
		if f.place, err = newPlace("fleet", f); err != nil {
			return nil, err
		}
	}
	return f.place.config("/clusters/" + cluster), nil
}

// newPlace serves a handler at a new port.
func newPlace(name string, handler http.Handler) (*place, error) {
	certificate, ca, err := selfSigned(name)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	secured := tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2", "http/1.1"}})
	p := &place{
		server: &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)}, address: listener.Addr().String(), ca: ca,
	}
	go p.server.Serve(secured) //nolint:errcheck // it ends with Close
	return p, nil
}

// config returns the configuration of a client of what is served below a path.
func (p *place) config(path string) *rest.Config {
	return &rest.Config{
		Host: "https://" + p.address + path, BearerToken: "simulated", QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: p.ca},
	}
}

// Close closes everything that Listen has opened.
func (f *Fleet) Close() error {
	var errs []error
	for _, c := range f.Clusters() {
		c.mu.Lock()
		p := c.place
		c.place = nil
		c.mu.Unlock()
		errs = append(errs, p.close())
	}
	f.mu.Lock()
	p := f.place
	f.place = nil
	f.mu.Unlock()
	return errors.Join(append(errs, p.close())...)
}

// close ends the server; a nil place is closed.
func (p *place) close() error {
	if p == nil {
		return nil
	}
	return p.server.Close()
}

// WriteKubeconfigs calls Listen for every cluster, and writes a file NAME.kubeconfig for each.
func (f *Fleet) WriteKubeconfigs(dir string) error {
	for _, c := range f.Clusters() {
		config, err := c.Listen()
		if err != nil {
			return err
		}
		file := clientcmdapi.NewConfig()
		file.Clusters[c.name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
		file.AuthInfos[c.name] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
		file.Contexts[c.name] = &clientcmdapi.Context{Cluster: c.name, AuthInfo: c.name}
		file.CurrentContext = c.name
		text, err := clientcmd.Write(*file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, c.name+".kubeconfig"), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func selfSigned(name string) (certificate tls.Certificate, authority []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return certificate, nil, err
	}
	number, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return certificate, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: number, Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(30 * 24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return certificate, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
