package access

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	certificates "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
)

// A file is the parsed content of a file, which is read again when it changes. If it becomes
// unreadable or invalid, the last content is used.
type file[T any] struct {
	path  string
	parse func([]byte) (T, error)

	mu    sync.Mutex
	time  time.Time
	size  int64
	value T
}

func newFile[T any](path string, parse func([]byte) (T, error)) *file[T] {
	return &file[T]{path: path, parse: parse}
}

// get returns the content. It returns an error only if there has never been any.
func (f *file[T]) get() (T, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := !f.time.IsZero()
	info, err := os.Stat(f.path)
	if err != nil && known || err == nil && info.ModTime().Equal(f.time) && info.Size() == f.size {
		return f.value, nil
	}
	raw, err := os.ReadFile(f.path)
	if err == nil {
		var value T
		if value, err = f.parse(raw); err == nil {
			f.value, f.time, f.size = value, info.ModTime(), info.Size()
			return value, nil
		}
		err = fmt.Errorf("%s: %w", f.path, err)
	}
	if known {
		err = nil
	}
	return f.value, err
}

// A keyPair is a certificate and its key.
type keyPair struct {
	cert, key string

	mu    sync.Mutex
	times [2]time.Time
	pair  *tls.Certificate
}

// get returns the pair in the files, or the last pair that matched, since the files do not
// match while one of them is replaced.
func (k *keyPair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var times [2]time.Time
	for i, path := range []string{k.cert, k.key} {
		if info, err := os.Stat(path); err == nil {
			times[i] = info.ModTime()
		}
	}
	if k.pair != nil && times == k.times {
		return k.pair, nil
	}
	pair, err := tls.LoadX509KeyPair(k.cert, k.key)
	switch {
	case err == nil:
		k.pair, k.times = &pair, times
	case k.pair == nil:
		return nil, fmt.Errorf("server.certFile: %w", err)
	}
	return k.pair, nil
}

func parsePool(raw []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(raw) {
		return nil, errors.New("has no certificate in PEM")
	}
	return pool, nil
}

func verifying(pool *file[*x509.CertPool]) certificates.VerifyOptionFunc {
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

func parseTokens(raw []byte) (tokens, error) {
	out := tokens{}
	number := 0
	for line := range strings.Lines(string(raw)) {
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

type tokenReader struct{ *file[tokens] }

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
