package signature

import (
	"bytes"
	"crypto/rand"
	"crypto/sha512"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"golang.org/x/crypto/ssh"
)

// A SigningKey is a private key that signs commits.
type SigningKey struct {
	pgp *openpgp.Entity
	ssh ssh.Signer
}

// LoadSigningKey reads an OpenPGP private key, armored or binary, or an SSH private key.
// The key must not be encrypted, since a daemon cannot ask for a passphrase.
func LoadSigningKey(path string) (*SigningKey, error) {
	content, err := readFile(path)
	if err != nil {
		return nil, err
	}
	if signer, err := ssh.ParsePrivateKey(content); err == nil {
		return &SigningKey{ssh: signer}, nil
	} else if _, encrypted := errors.AsType[*ssh.PassphraseMissingError](err); encrypted {
		return nil, fmt.Errorf("%s: the SSH key is encrypted; give one without a passphrase", path)
	}
	ring, err := readKeyRing(content)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: holds neither an SSH private key nor an OpenPGP one", path)
	case len(ring) != 1 || ring[0].PrivateKey == nil:
		return nil, fmt.Errorf("%s: must hold exactly one OpenPGP private key", path)
	}
	if key, ok := ring[0].SigningKey(time.Now()); !ok || key.PrivateKey == nil {
		return nil, fmt.Errorf("%s: the OpenPGP key cannot sign; see whether it has expired", path)
	} else if key.PrivateKey.Encrypted {
		return nil, fmt.Errorf("%s: the OpenPGP key is encrypted; give one without a passphrase", path)
	}
	return &SigningKey{pgp: ring[0]}, nil
}

// Sign returns the armored signature of a raw commit object that has none yet.
func (k *SigningKey) Sign(commit []byte, now time.Time) (string, error) {
	if k.ssh != nil {
		return k.signSSH(commit)
	}
	var out bytes.Buffer
	config := &packet.Config{Time: func() time.Time { return now }}
	if err := openpgp.ArmoredDetachSign(&out, k.pgp, bytes.NewReader(commit), config); err != nil {
		return "", fmt.Errorf("sign with the OpenPGP key: %w", err)
	}
	return out.String(), nil
}

func (k *SigningKey) signSSH(commit []byte) (string, error) {
	digest := sha512.Sum512(commit)
	payload := append([]byte(sshMagic), ssh.Marshal(sshSigned{Namespace: sshNamespace, Hash: "sha512", Digest: digest[:]})...)
	signer, algorithm := k.ssh, ""
	if signer.PublicKey().Type() == ssh.KeyAlgoRSA {
		algorithm = ssh.KeyAlgoRSASHA512 // the default uses SHA-1
	}
	with, ok := signer.(ssh.AlgorithmSigner)
	if !ok {
		return "", errors.New("sign with the SSH key: its kind is not supported")
	}
	sig, err := with.SignWithAlgorithm(rand.Reader, payload, algorithm)
	if err != nil {
		return "", fmt.Errorf("sign with the SSH key: %w", err)
	}
	blob := ssh.Marshal(sshBlob{Version: 1, PublicKey: signer.PublicKey().Marshal(), Namespace: sshNamespace, Hash: "sha512", Signature: ssh.Marshal(sig)})
	return string(pem.EncodeToMemory(&pem.Block{Type: "SSH SIGNATURE", Bytes: append([]byte(sshMagic), blob...)})), nil
}
