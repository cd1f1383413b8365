package signature

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// A Signer is the owner of the key of a valid signature.
type Signer struct {
	// Key is the key's fingerprint.
	Key string
	// names are the e-mail addresses of an OpenPGP key, or the principals of an SSH key, which
	// may be patterns.
	names []string
}

// sshNamespace distinguishes signatures of commits from those for other purposes.
const sshNamespace = "git"

// allowed is one line of an allowed signers file; see ALLOWED SIGNERS in ssh-keygen(1).
type allowed struct {
	line       int
	principals string
	key        ssh.PublicKey
	namespaces string
	after      time.Time
	before     time.Time
}

// parseAllowed parses a file. An error begins with the line number. An unknown option is an
// error, since it could be a restriction.
func parseAllowed(content string) ([]allowed, error) {
	var all []allowed
	for i, line := range strings.Split(content, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		a, err := parseAllowedLine(line)
		if err != nil {
			return nil, fmt.Errorf("%d: %w", i+1, err)
		}
		a.line = i + 1
		all = append(all, a)
	}
	return all, nil
}

func parseAllowedLine(line string) (allowed, error) {
	var a allowed
	var rest string
	var err error
	if a.principals, rest, err = word(line); err != nil {
		return a, err
	}
	if a.principals == "" {
		return a, errors.New("names no principal")
	}
	key, _, options, _, err := ssh.ParseAuthorizedKey([]byte(rest))
	if err != nil {
		return a, errors.New(`has no public key; a line is "principals [options] type key"`)
	}
	if _, isCertificate := key.(*ssh.Certificate); isCertificate {
		return a, errors.New("certificates are not supported")
	}
	a.key = key
	for _, o := range options {
		if err := a.option(o); err != nil {
			return a, err
		}
	}
	return a, nil
}

// word returns the first word, which may be quoted, and the rest.
func word(line string) (first, rest string, err error) {
	if quoted, ok := strings.CutPrefix(line, `"`); ok {
		first, rest, ok = strings.Cut(quoted, `"`)
		if !ok {
			return "", "", errors.New("has a quote that does not end")
		}
		return first, strings.TrimSpace(rest), nil
	}
	first, rest, _ = strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
	return first, strings.TrimSpace(rest), nil
}

func (a *allowed) option(o string) error {
	name, value, _ := strings.Cut(o, "=")
	value = strings.Trim(value, `"`)
	var err error
	switch strings.ToLower(name) {
	case "namespaces":
		a.namespaces = value
	case "valid-after":
		a.after, err = parseTime(value)
	case "valid-before":
		a.before, err = parseTime(value)
	default:
		err = fmt.Errorf("option %q is not supported", name)
	}
	return err
}

// parseTime parses YYYYMMDD[HHMM[SS]][Z].
func parseTime(s string) (time.Time, error) {
	zone := time.Local
	digits, utc := strings.CutSuffix(s, "Z")
	if utc {
		zone = time.UTC
	}
	for _, layout := range []string{"20060102", "200601021504", "20060102150405"} {
		if len(digits) == len(layout) {
			if t, err := time.ParseInLocation(layout, digits, zone); err == nil {
				return t, nil
			}
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time such as 20260131 or 202601311530Z", s)
}

// permits returns why a key may not sign a commit of the given time; nil if it may. The key
// must be valid at that time and now.
func (a allowed) permits(made, now time.Time) error {
	if a.namespaces != "" && !matchList([]string{a.namespaces}, sshNamespace) {
		return fmt.Errorf("its namespaces are %q", a.namespaces)
	}
	for _, t := range []time.Time{made, now} {
		if !a.after.IsZero() && t.Before(a.after) {
			return fmt.Errorf("it is valid only after %s", a.after)
		}
		if !a.before.IsZero() && !t.Before(a.before) {
			return fmt.Errorf("it is valid only before %s", a.before)
		}
	}
	return nil
}

// matchList reports whether the name matches one of the comma-separated lists of patterns. A
// list with a matching pattern that begins with ! does not match.
func matchList(lists []string, name string) bool {
	for _, list := range lists {
		matches := false
		for pattern := range strings.SplitSeq(list, ",") {
			refuse := strings.HasPrefix(pattern, "!")
			if !matchPattern(strings.TrimPrefix(pattern, "!"), name) {
				continue
			}
			if refuse {
				matches = false
				break
			}
			matches = true
		}
		if matches {
			return true
		}
	}
	return false
}

// matchPattern matches the wildcards * and ?, ignoring case. Other characters have no special
// meaning, and * also matches slashes.
func matchPattern(pattern, name string) bool {
	plain := strings.NewReplacer(`\`, `\\`, "[", `\[`, "/", "\x00").Replace(strings.ToLower(pattern))
	ok, err := path.Match(plain, strings.ReplaceAll(strings.ToLower(name), "/", "\x00"))
	return ok && err == nil
}
