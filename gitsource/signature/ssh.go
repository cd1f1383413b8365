package signature

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	sshBegin = "-----BEGIN SSH SIGNATURE-----"
	sshMagic = "SSHSIG"
)

// An sshBlob is the content of the armor after sshMagic.
type sshBlob struct {
	Version   uint32
	PublicKey []byte
	Namespace string
	Reserved  string
	Hash      string
	Signature []byte
}

// An sshSigned is the message that is signed, after sshMagic.
type sshSigned struct {
	Namespace string
	Reserved  string
	Hash      string
	Digest    []byte
}

func (k *Keys) verifySSH(payload, sig []byte, made, now time.Time) (Signer, error) {
	s, err := k.checkSSH(payload, sig, made, now)
	if err != nil {
		return Signer{}, fmt.Errorf("SSH signature: %w", err)
	}
	return s, nil
}

func (k *Keys) checkSSH(payload, sig []byte, made, now time.Time) (Signer, error) {
	blob, err := parseBlob(sig)
	if err != nil {
		return Signer{}, err
	}
	key, err := ssh.ParsePublicKey(blob.PublicKey)
	if err != nil {
		return Signer{}, fmt.Errorf("public key: %w", err)
	}
	if err := verifyBlob(blob, key, payload); err != nil {
		return Signer{}, err
	}
	signer := Signer{Key: ssh.FingerprintSHA256(key)}
	var refused error
	for _, a := range k.ssh {
		if !bytes.Equal(a.key.Marshal(), blob.PublicKey) {
			continue
		}
		if err := a.permits(made, now); err != nil {
			refused = fmt.Errorf("line %d: %w", a.line, err)
			continue
		}
		signer.names = append(signer.names, a.principals)
	}
	switch {
	case len(signer.names) > 0:
		return sorted(signer), nil
	case refused != nil:
		return Signer{}, fmt.Errorf("key %s may not sign this: %w", signer.Key, refused)
	}
	return Signer{}, fmt.Errorf("key %s is not of an allowed signer; sign with another key, or add this one to the file of allowed signers", signer.Key)
}

func sorted(s Signer) Signer {
	slices.Sort(s.names)
	return s
}

// parseBlob parses a signature. It accepts only the form that ssh-keygen writes.
func parseBlob(sig []byte) (sshBlob, error) {
	var b sshBlob
	block, rest := pem.Decode(sig)
	if block == nil || block.Type != "SSH SIGNATURE" || len(block.Headers) > 0 || len(bytes.TrimSpace(rest)) > 0 {
		return b, errors.New("malformed armor")
	}
	body, ok := bytes.CutPrefix(block.Bytes, []byte(sshMagic))
	if !ok {
		return b, errors.New("malformed content")
	}
	if err := ssh.Unmarshal(body, &b); err != nil {
		return b, errors.New("malformed content")
	}
	switch {
	case b.Version != 1:
		return b, fmt.Errorf("version %d is not supported", b.Version)
	case b.Namespace != sshNamespace:
		return b, fmt.Errorf("made for %q, not for Git", b.Namespace)
	case b.Reserved != "":
		return b, errors.New("uses a reserved field")
	}
	return b, nil
}

// verifyBlob verifies the signature of a payload with a key.
func verifyBlob(b sshBlob, key ssh.PublicKey, payload []byte) error {
	if _, isCertificate := key.(*ssh.Certificate); isCertificate {
		return errors.New("certificates are not supported")
	}
	var digest []byte
	switch b.Hash {
	case "sha256":
		sum := sha256.Sum256(payload)
		digest = sum[:]
	case "sha512":
		sum := sha512.Sum512(payload)
		digest = sum[:]
	default:
		return fmt.Errorf("hash %q is not supported", b.Hash)
	}
	var sig ssh.Signature
	if err := ssh.Unmarshal(b.Signature, &sig); err != nil {
		return errors.New("malformed content")
	}
	if sig.Format == ssh.KeyAlgoRSA { // uses SHA-1
		return fmt.Errorf("algorithm %q is too weak", sig.Format)
	}
	if strings.HasPrefix(key.Type(), "sk-") && (len(sig.Rest) < 1 || sig.Rest[0]&1 == 0) {
		return errors.New("made by a security key that nobody touched")
	}
	signed := append([]byte(sshMagic), ssh.Marshal(sshSigned{b.Namespace, b.Reserved, b.Hash, digest})...)
	if err := key.Verify(signed, &sig); err != nil {
		return errors.New("does not fit the commit")
	}
	return nil
}
