package access

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	certificates "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
)

// A reloader has the parsed content of some files, and reads them again when one of them changes.
// While one is unreadable, or they are invalid or do not match, the last content is used.
type reloader[T any] struct {
	paths []string
	parse func(contents [][]byte) (T, error)

	mu    sync.Mutex
	known bool
	stats []fileStat
	value T
}

// A fileStat identifies a version of a file.
type fileStat struct {
	time time.Time
	size int64
}

// get returns the content. It returns an error only if there has never been any.
func (f *reloader[T]) get() (T, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.read(); err != nil && !f.known {
		return f.value, err
	}
	return f.value, nil
}

func (f *reloader[T]) read() error {
	stats := make([]fileStat, len(f.paths))
	for i, path := range f.paths {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		stats[i] = fileStat{info.ModTime(), info.Size()}
	}
	if f.known && slices.Equal(stats, f.stats) {
		return nil
	}
	contents := make([][]byte, len(f.paths))
	for i, path := range f.paths {
		var err error
		if contents[i], err = os.ReadFile(path); err != nil {
			return err
		}
	}
	value, err := f.parse(contents)
	if err != nil {
		return fmt.Errorf("%s: %w", strings.Join(f.paths, " and "), err)
	}
	f.value, f.stats, f.known = value, stats, true
	return nil
}

func newReloader[T any](parse func([][]byte) (T, error), paths ...string) *reloader[T] {
	return &reloader[T]{paths: paths, parse: parse}
}

// parsePair parses a certificate and its key.
func parsePair(contents [][]byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(contents[0], contents[1])
	return &pair, err
}

func parsePool(contents [][]byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(contents[0]) {
		return nil, errors.New("has no certificate in PEM")
	}
	return pool, nil
}

func verifying(pool *reloader[*x509.CertPool]) certificates.VerifyOptionFunc {
	return func() (x509.VerifyOptions, bool) {
		roots, err := pool.get()
		options := certificates.DefaultVerifyOptions()
		options.Roots = roots
		return options, err == nil
	}
}

// tokens maps the hashes of tokens to users. The time of looking up a hash reveals nothing
// about the token.
type tokens map[[sha256.Size]byte]*user.DefaultInfo

// minTokenLength is the minimum length of tokens. Shorter ones could be guessed.
const minTokenLength = 16

func parseTokens(contents [][]byte) (tokens, error) {
	out := tokens{}
	number := 0
	for line := range strings.Lines(string(contents[0])) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		token, name, _ := strings.Cut(line, ",")
		if len(token) < minTokenLength {
			return nil, fmt.Errorf("line %d: a token needs %d characters or more, such as \"openssl rand -hex 32\" makes", number, minTokenLength)
		}
		if name = strings.TrimSpace(name); name == "" {
			name = fmt.Sprintf("token-%d", number)
		}
		out[sha256.Sum256([]byte(token))] = &user.DefaultInfo{Name: name}
	}
	if len(out) == 0 {
		return nil, errors.New("has no token; write one in each line, TOKEN or TOKEN,USER")
	}
	return out, nil
}

type tokenReader struct{ *reloader[tokens] }

// AuthenticateToken implements authenticator.Token.
func (r tokenReader) AuthenticateToken(_ context.Context, token string) (*authenticator.Response, bool, error) {
	users, err := r.get()
	if err != nil {
		return nil, false, err
	}
	who, known := users[sha256.Sum256([]byte(token))]
	if !known {
		return nil, false, nil
	}
	return &authenticator.Response{User: who}, true, nil
}
