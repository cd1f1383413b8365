package remote

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/objects"
)

// A Secret is a value that cannot be printed by accident: formatting, logging or marshalling it
// gives ***.
type Secret struct{ value string }

const masked = "***"

// Reveal returns the value. Only the code that authenticates with it should call it.
func (s Secret) Reveal() string { return s.value }

// Empty reports whether there is no value.
func (s Secret) Empty() bool { return s.value == "" }

// String implements fmt.Stringer.
func (s Secret) String() string { return masked }

// Format implements fmt.Formatter for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, masked) }

// MarshalText implements encoding.TextMarshaler, which encoding/json uses too.
func (s Secret) MarshalText() ([]byte, error) { return []byte(masked), nil }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(masked) }

// A SecretSource names the file or environment variable that contains a secret; the
// configuration itself never does. It is read again at each use, so that replacing the file
// rotates the secret.
type SecretSource struct {
	// File is a path; at most one of File and Env is set.
	File string
	// Env is the variable's name.
	Env string
}

// IsZero reports whether neither is set.
func (s SecretSource) IsZero() bool { return s == SecretSource{} }

// Read returns the current secret without trailing line breaks.
func (s SecretSource) Read(getenv func(string) string) (Secret, error) {
	if s.Env != "" {
		value := strings.TrimSpace(getenv(s.Env))
		if value == "" {
			return Secret{}, fmt.Errorf("environment variable %s is empty", s.Env)
		}
		return Secret{value}, nil
	}
	content, err := readSmall(s.File)
	if err != nil {
		return Secret{}, err
	}
	value := strings.TrimRight(string(content), "\r\n")
	if value == "" {
		return Secret{}, fmt.Errorf("file %s is empty", s.File)
	}
	return Secret{value}, nil
}

// maxSecret is the maximum size of a credential file; a key has a few kilobytes.
const maxSecret = 64 << 10

// readSmall reads a file of at most maxSecret bytes.
func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if len(content) > maxSecret {
		return nil, fmt.Errorf("file %s: %w: more than %d bytes", path, objects.ErrTooLarge, maxSecret)
	}
	return content, nil
}

func (s SecretSource) validate(field string, hasEnv bool) error {
	switch {
	case s.File != "" && s.Env != "":
		return FieldErrorf(field, "set only one of file and env")
	case s.Env != "" && !hasEnv:
		return FieldErrorf(field+".env", "the environment is not available here; use a file")
	}
	return nil
}
