// Package decryption has the keys with which encrypted files of the repository are decrypted.
//
// Keys come from a file, a directory of files, an environment variable, or a key service, to which the keys of cloud
// providers are left. Files are read again when they change. No message has a key.
package decryption

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"filippo.io/age"
	agearmor "filippo.io/age/armor"
	"github.com/ProtonMail/go-crypto/openpgp"
	pgparmor "github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"github.com/gitfleet/gitfleet/gitsource/hub/sops"
)

// Config says where keys are. The zero Config has none.
type Config struct {
	// File is a file with age identities or OpenPGP private keys, or a directory of such files.
	File string
	// Env is an environment variable with the same.
	Env string
	// Service is the address of a key service, HOST:PORT or unix:///PATH; empty for none.
	Service string
	// Paths limit the keys of files below a path of the repository.
	Paths []Path
	// Getenv reads environment variables.
	Getenv func(string) string
}

// A Path says which files of a directory have the keys for the files below a path of the repository. The longest path that
// matches counts. The keys of these files decrypt nothing else: whoever may write to another path could copy what is encrypted
// for this one.
type Path struct {
	Path  string
	Files []string
}

// ParsePath parses PATH=FILE,FILE.
func ParsePath(text string) (Path, error) {
	path, files, ok := strings.Cut(text, "=")
	p := Path{Path: strings.Trim(path, "/"), Files: strings.Split(files, ",")}
	if !ok || p.Path == "" || slices.Contains(p.Files, "") || slices.ContainsFunc(p.Files, func(f string) bool { return f != filepath.Base(f) }) {
		return p, fmt.Errorf("%q is not PATH=FILE,FILE with names of files in the directory decryption.keyFile", text)
	}
	return p, nil
}

// Configured reports whether anything can be decrypted.
func (c Config) Configured() bool { return c.File != "" || c.Env != "" || c.Service != "" }

// Keys are the keys of a configuration. They are safe for concurrent use.
type Keys struct {
	config  Config
	service *service

	mu      sync.Mutex
	version string
	files   map[string]keyring // by the name of the file; that of the variable is empty
	err     error
	// failedTime is how long keys were tried without success since the version was asked for, as each load of a commit does.
	failedTime time.Duration
}

// maxFailedTime is how long keys are tried without success for one commit. Whoever can commit decides for whom files are encrypted.
const maxFailedTime = time.Minute

// A keyring has the keys of one file.
type keyring struct {
	age []age.Identity
	pgp openpgp.EntityList
}

// New returns the keys of a configuration; nil if it has none.
func New(c Config) *Keys {
	if !c.Configured() {
		return nil
	}
	k := &Keys{config: c}
	if c.Service != "" {
		k.service = &service{address: c.Service}
	}
	return k
}

// maxKeys limits the size of a file with keys, and the number of files in a directory.
const (
	maxKeys  = 1 << 20
	maxFiles = 1000
)

// read reads the keys again if they have changed.
func (k *Keys) read() error {
	texts, err := k.texts()
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		fmt.Fprintf(h, "%q %q\n", name, texts[name])
	}
	fmt.Fprint(h, err)
	version := hex.EncodeToString(h.Sum(nil)[:8])
	if version == k.version {
		return k.err
	}
	k.version, k.err, k.files = version, err, map[string]keyring{}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		ring, err := parse(texts[name])
		if err != nil {
			where := name
			if name == "" {
				where = "environment variable " + k.config.Env
			}
			k.err = errors.Join(k.err, fmt.Errorf("%s: %w", where, err))
		}
		k.files[name] = ring
	}
	return k.err
}

// Files lists the files with keys.
func (c Config) Files() ([]string, error) {
	if c.File == "" {
		return nil, nil
	}
	info, err := os.Stat(c.File)
	if err != nil || !info.IsDir() {
		return []string{c.File}, err
	}
	entries, err := os.ReadDir(c.File)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, e := range entries {
		// A mounted Secret has hidden directories, to which its files are links.
		if name := filepath.Join(c.File, e.Name()); !strings.HasPrefix(e.Name(), ".") {
			if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
				all = append(all, name)
			}
		}
	}
	if len(all) > maxFiles {
		return nil, fmt.Errorf("%s has more than %d files", c.File, maxFiles)
	}
	return all, nil
}

func (k *Keys) texts() (map[string][]byte, error) {
	all := map[string][]byte{}
	files, err := k.config.Files()
	if err == nil && len(files) == 0 && k.config.File != "" {
		err = fmt.Errorf("%s is a directory without files, and so without keys", k.config.File)
	}
	for _, name := range files {
		data, readErr := readSmall(name)
		if readErr != nil {
			err = errors.Join(err, readErr)
			continue
		}
		all[filepath.Base(name)] = data
	}
	if k.config.Env != "" {
		all[""] = []byte(k.config.Getenv(k.config.Env))
	}
	return all, err
}

func readSmall(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxKeys+1))
	if err == nil && len(data) > maxKeys {
		err = fmt.Errorf("%s is larger than a file with keys", name)
	}
	return data, err
}

// parse parses age identities, one a line, or OpenPGP private keys. Errors do not quote them.
func parse(text []byte) (keyring, error) {
	var ring keyring
	if bytes.Contains(text, []byte("-----BEGIN PGP ")) || len(text) > 0 && text[0] >= 0x80 {
		var err error
		if bytes.HasPrefix(bytes.TrimSpace(text), []byte("-----BEGIN")) {
			ring.pgp, err = openpgp.ReadArmoredKeyRing(bytes.NewReader(text))
		} else {
			ring.pgp, err = openpgp.ReadKeyRing(bytes.NewReader(text))
		}
		if err != nil {
			return ring, errors.New("has no OpenPGP private key that can be read")
		}
		for _, e := range ring.pgp {
			if e.PrivateKey != nil && e.PrivateKey.Encrypted {
				return ring, errors.New("the OpenPGP private key has a passphrase; export it without one")
			}
		}
		return ring, nil
	}
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		identities, err := age.ParseIdentities(strings.NewReader(line))
		if err != nil {
			return ring, fmt.Errorf("line %d is no age identity (AGE-SECRET-KEY-1…)", i+1)
		}
		ring.age = append(ring.age, identities...)
	}
	return ring, nil
}

// Version changes whenever the keys do.
func (k *Keys) Version() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failedTime = 0
	_ = k.read() // an error is one of each file that needs a key
	return k.version
}

// Check returns why keys cannot be read or used, and which files of Paths are not there; nil if all is well.
func (k *Keys) Check() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	err := k.read()
	if len(k.files) == 0 { // the error says why
		return err
	}
	for _, p := range k.config.Paths {
		for _, name := range p.Files {
			if _, statErr := os.Stat(filepath.Join(k.config.File, name)); errors.Is(statErr, os.ErrNotExist) {
				err = errors.Join(err, fmt.Errorf("%s has no file %s, which has the keys for %s", k.config.File, name, p.Path))
			}
		}
	}
	return err
}

// DataKey returns the key of an encrypted file of the repository. It asks a key service for ten seconds at most, and has the keys of the
// last call of Version, so that they are read once for all files of a commit.
func (k *Keys) DataKey(file string, recipients []sops.Recipient) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.version == "" {
		_ = k.read()
	}
	problem := k.err
	if k.failedTime > maxFailedTime {
		return nil, fmt.Errorf("%w: its keys are not tried, since those of other files have taken %s without success", sops.ErrNoKey, maxFailedTime)
	}
	ctx, cancel := context.WithTimeout(context.Background(), serviceTime)
	defer cancel()
	rings := k.ringsFor(file)
	try := []func(sops.Recipient) []byte{
		func(r sops.Recipient) []byte {
			for _, ring := range rings {
				if key := ring.decrypt(r); key != nil {
					return key
				}
			}
			return nil
		},
		func(r sops.Recipient) []byte {
			if k.service == nil || r.Kind == "age" || r.Kind == "pgp" || ctx.Err() != nil {
				return nil
			}
			key, err := k.service.decrypt(ctx, r)
			if err != nil {
				problem = errors.Join(problem, fmt.Errorf("key service: %w", err))
			}
			return key
		},
	}
	for _, decrypt := range try {
		for _, r := range recipients {
			start := time.Now()
			if key := decrypt(r); key != nil {
				return key, nil
			}
			k.failedTime += time.Since(start)
		}
	}
	return nil, errors.Join(sops.ErrNoKey, problem)
}

// serviceTime is how long a key service may take for one file.
const serviceTime = 10 * time.Second

// ringsFor returns the keys that may decrypt a file of the repository: those of the longest path above it, or else those
// that are for no path.
func (k *Keys) ringsFor(file string) []keyring {
	var rule *Path
	for i, p := range k.config.Paths {
		if (file == p.Path || strings.HasPrefix(file, p.Path+"/")) && (rule == nil || len(p.Path) > len(rule.Path)) {
			rule = &k.config.Paths[i]
		}
	}
	var all []keyring
	for name, ring := range k.files {
		of := func(p Path) bool { return slices.Contains(p.Files, name) }
		if rule != nil && of(*rule) || rule == nil && !slices.ContainsFunc(k.config.Paths, of) {
			all = append(all, ring)
		}
	}
	return all
}

// maxMessage limits what an OpenPGP message, which has a key of 32 bytes, may decompress to.
const maxMessage = 64 << 10

// decrypt returns the key that is encrypted for a recipient; nil if no key of the ring is that of the recipient.
func (ring keyring) decrypt(r sops.Recipient) []byte {
	var plain io.Reader
	switch r.Kind {
	case "age":
		if len(ring.age) == 0 {
			return nil
		}
		reader, err := age.Decrypt(agearmor.NewReader(strings.NewReader(r.Encrypted)), ring.age...)
		if err != nil {
			return nil
		}
		plain = reader
	case "pgp":
		block, err := pgparmor.Decode(strings.NewReader(r.Encrypted))
		if err != nil || len(ring.pgp) == 0 {
			return nil
		}
		most := int64(maxMessage) // as what is compressed may be compressed again, and end after days
		message, err := openpgp.ReadMessage(block.Body, ring.pgp, nil, &packet.Config{MaxDecompressedMessageSize: &most})
		if err != nil {
			return nil
		}
		plain = message.UnverifiedBody
	default:
		return nil
	}
	key, err := io.ReadAll(io.LimitReader(plain, 1<<10))
	if err != nil {
		return nil
	}
	return key
}
