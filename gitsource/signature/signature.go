// Package signature verifies and creates the signatures of commits.
//
// It supports OpenPGP and SSH signatures. [Keys.Verify] returns an error unless one of the
// given keys has signed exactly the bytes of the commit, in a form that all programs read in
// the same way.
package signature

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// Keys are the public keys of the accepted signers.
type Keys struct {
	pgp openpgp.EntityList
	ssh []allowed
}

// Is reports whether a configured name refers to this signer. The name is a fingerprint, an
// e-mail address or a principal.
func (s Signer) Is(name string) bool {
	return strings.EqualFold(s.Key, name) || matchList(s.names, name)
}

// String returns the signer as messages show it.
func (s Signer) String() string {
	if len(s.names) == 0 {
		return s.Key
	}
	return fmt.Sprintf("%s (%s)", strings.Join(s.names, ","), s.Key)
}

// maxKeys is the maximum size of a file of keys, in bytes.
const maxKeys = 8 << 20

// Load reads OpenPGP key rings, armored or binary, and a file of allowed SSH signers unless its
// name is empty. It is an error if the files contain no key, since no commit could be verified.
func Load(keyRings []string, allowedSigners string) (*Keys, error) {
	k := &Keys{}
	for _, path := range keyRings {
		content, err := readFile(path)
		if err != nil {
			return nil, err
		}
		ring, err := parseKeyRing(content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		k.pgp = append(k.pgp, ring...)
	}
	if allowedSigners != "" {
		content, err := readFile(allowedSigners)
		if err != nil {
			return nil, err
		}
		if k.ssh, err = parseAllowed(string(content)); err != nil {
			return nil, fmt.Errorf("%s:%w", allowedSigners, err)
		}
	}
	if len(k.pgp) == 0 && len(k.ssh) == 0 {
		return nil, errors.New("no key of any signer is configured")
	}
	return k, nil
}

// Digest identifies the content of the files that Load reads.
func Digest(keyRings []string, allowedSigners string) (string, error) {
	sum := sha256.New()
	for _, path := range append(slices.Clone(keyRings), allowedSigners) {
		if path == "" {
			continue
		}
		content, err := readFile(path)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%d\n%s", len(content), content)
	}
	return string(sum.Sum(nil)), nil
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxKeys {
		return nil, fmt.Errorf("%s: larger than %d bytes", path, maxKeys)
	}
	return os.ReadFile(path)
}

// readKeyRing reads an armored or binary key ring.
func readKeyRing(content []byte) (openpgp.EntityList, error) {
	read := openpgp.ReadKeyRing
	if bytes.Contains(content, []byte("-----BEGIN PGP")) {
		read = openpgp.ReadArmoredKeyRing
	}
	return read(bytes.NewReader(content))
}

// parseKeyRing reads a key ring and refuses private keys.
func parseKeyRing(content []byte) (openpgp.EntityList, error) {
	ring, err := readKeyRing(content)
	if err != nil {
		return nil, fmt.Errorf("is not an OpenPGP key ring: %w", err)
	}
	for _, e := range ring {
		if e.PrivateKey != nil {
			return nil, errors.New("holds a private key; give only public ones")
		}
	}
	return ring, nil
}

var errNotSigned = errors.New("not signed; sign it, as git commit -S does")

// Verify returns the signer of a raw commit object of the given time. The key must be valid
// both at that time and now.
func (k *Keys) Verify(commit []byte, made, now time.Time) (Signer, error) {
	payload, sig, err := Split(commit)
	if err != nil {
		return Signer{}, err
	}
	switch kind := firstLine(sig); kind {
	case "-----BEGIN PGP SIGNATURE-----":
		return k.verifyPGP(payload, sig, now)
	case sshBegin:
		return k.verifySSH(payload, sig, made, now)
	default:
		return Signer{}, fmt.Errorf("signature of a kind that is not supported: %q", kind)
	}
}

func firstLine(b []byte) string {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return string(line[:min(len(line), 80)])
}

// Split returns the signed part of a commit and its signature. It refuses commits that programs
// could read in different ways.
func Split(commit []byte) (payload, sig []byte, err error) {
	if bytes.IndexByte(commit, 0) >= 0 {
		return nil, nil, errors.New("commit holds a NUL byte, and cannot be verified")
	}
	header, message, found := bytes.Cut(commit, []byte("\n\n"))
	if !found {
		return nil, nil, errNotSigned
	}
	var signed [][]byte
	inside, count := false, 0
	for line := range bytes.SplitSeq(header, []byte("\n")) {
		switch {
		case bytes.HasPrefix(line, []byte("gpgsig ")):
			inside = true
			count++
			sig = append(append(sig, line[len("gpgsig "):]...), '\n')
		case inside && bytes.HasPrefix(line, []byte(" ")):
			sig = append(append(sig, line[1:]...), '\n')
		case bytes.HasPrefix(line, []byte("gpgsig")):
			return nil, nil, errors.New("signature header of a kind that is not supported")
		default:
			inside = false
			signed = append(signed, line)
		}
	}
	if count == 0 {
		return nil, nil, errNotSigned
	}
	if count > 1 {
		return nil, nil, errors.New("signed twice, and cannot be verified")
	}
	return slices.Concat(bytes.Join(signed, []byte("\n")), []byte("\n\n"), message), sig, nil
}

func (k *Keys) verifyPGP(payload, sig []byte, now time.Time) (Signer, error) {
	config := &packet.Config{Time: func() time.Time { return now }}
	entity, err := openpgp.CheckArmoredDetachedSignature(k.pgp, bytes.NewReader(payload), bytes.NewReader(sig), config)
	if err != nil {
		return Signer{}, fmt.Errorf("OpenPGP signature: %w", err)
	}
	s := Signer{Key: strings.ToUpper(hex.EncodeToString(entity.PrimaryKey.Fingerprint))}
	for _, id := range entity.Identities {
		// The owner of the key has chosen the address, so that it must not be used as a
		// pattern.
		if id.UserId != nil && id.UserId.Email != "" && len(id.Revocations) == 0 && !strings.ContainsAny(id.UserId.Email, "*?!,") {
			s.names = append(s.names, id.UserId.Email)
		}
	}
	return sorted(s), nil
}
