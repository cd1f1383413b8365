package remote

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/gitfleet/gitfleet/gitsource/mask"
)

// A Location is the address of a remote, without any secret.
type Location struct {
	Scheme   string // https, http, ssh or file
	endpoint transport.Endpoint
}

// String returns the address without credentials.
func (l Location) String() string {
	if l.Scheme == "file" {
		return "file://" + l.endpoint.Path
	}
	ep := l.endpoint
	return ep.String()
}

// SameServer reports whether an address has the same scheme, host and port.
func (l Location) SameServer(address string) bool {
	other, err := ParseLocation(address)
	return err == nil && l.Scheme == other.Scheme && strings.EqualFold(l.endpoint.Host, other.endpoint.Host) && l.port() == other.port()
}

// Host returns the host and port, in lower case; empty for a file.
func (l Location) Host() string {
	if l.Scheme == "file" {
		return ""
	}
	return strings.ToLower(fmt.Sprintf("%s:%d", l.endpoint.Host, l.port()))
}

// Server returns HOST, or HOST:PORT if the address has a port.
func (l Location) Server() string {
	if l.endpoint.Port == 0 || l.endpoint.Port == defaultPorts[l.Scheme] {
		return l.endpoint.Host
	}
	return net.JoinHostPort(l.endpoint.Host, strconv.Itoa(l.endpoint.Port))
}

func (l Location) port() int { return cmp.Or(l.endpoint.Port, defaultPorts[l.Scheme]) }

// scpLike is user@host:path, which has no scheme.
var scpLike = regexp.MustCompile(`^(?:[^@/\s]+@)?(?:\[[0-9a-fA-F:]+\]|[^:/@\s]+):[^\s]+$`)

// ParseLocation parses an address. Its errors quote nothing that could be a credential.
func ParseLocation(raw string) (Location, error) {
	switch {
	case raw == "":
		return Location{}, errors.New("must be set")
	case strings.ContainsFunc(raw, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return Location{}, errors.New("contains a control character")
	case strings.Contains(raw, "://"):
		return parseURL(raw)
	case filepath.IsAbs(raw):
		return Location{"file", transport.Endpoint{Protocol: "file", Path: filepath.Clean(raw)}}, nil
	case scpLike.MatchString(raw):
		ep, err := transport.NewEndpoint(raw)
		if err != nil || ep.Protocol != "ssh" {
			return Location{}, errors.New("is not a URL")
		}
		return checkSSH(Location{"ssh", *ep})
	}
	return Location{}, errors.New("is neither a URL such as https://host/path, nor user@host:path, nor an absolute path")
}

func parseURL(raw string) (Location, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return Location{}, errors.New("is not a URL") // err contains the URL with its password
	}
	if u.RawQuery != "" || u.Fragment != "" || u.ForceQuery {
		return Location{}, errors.New("must not have a query or a fragment")
	}
	switch u.Scheme {
	case "file":
		if u.Host != "" && u.Host != "localhost" {
			return Location{}, fmt.Errorf("file://%s is not on this machine", u.Host)
		}
		return Location{"file", transport.Endpoint{Protocol: "file", Path: filepath.Clean(u.Path)}}, nil
	case "https", "http":
		if u.User != nil {
			return Location{}, errors.New("must not carry credentials; name them in auth, as a file or an environment variable")
		}
	case "ssh":
		if _, has := u.User.Password(); has {
			return Location{}, errors.New("must not carry a password; SSH uses a key, named in source.sshKeyFile or source.sshKeyEnv")
		}
	default:
		return Location{}, fmt.Errorf("scheme %q is not supported; use https or ssh", u.Scheme)
	}
	if u.Hostname() == "" {
		return Location{}, errors.New("names no host")
	}
	ep, err := transport.NewEndpoint(raw)
	if err != nil {
		return Location{}, errors.New("is not a URL")
	}
	if u.Scheme == "ssh" {
		return checkSSH(Location{"ssh", *ep})
	}
	ep.Path = strings.TrimRight(ep.Path, "/")
	return Location{u.Scheme, *ep}, nil
}

// checkSSH refuses an address that a shell or an option parser on the server could
// misinterpret.
func checkSSH(l Location) (Location, error) {
	if strings.HasPrefix(l.endpoint.Path, "-") || strings.HasPrefix(l.endpoint.Host, "-") {
		return Location{}, errors.New("path and host must not begin with a dash")
	}
	if l.endpoint.User == "" {
		l.endpoint.User = "git"
	}
	return l, nil
}

// Identity returns the normalized address of a repository: host and path, without scheme,
// credentials, default port and a trailing ".git". Equal identities mean the same repository.
// It is empty if the argument is not an address.
func Identity(address string) string {
	where, err := ParseLocation(address)
	if err != nil {
		return ""
	}
	ep := where.endpoint
	path := strings.TrimSuffix(strings.Trim(ep.Path, "/"), ".git")
	if where.Scheme == "file" {
		return "file:///" + path
	}
	host := strings.ToLower(ep.Host)
	if ep.Port != 0 && ep.Port != defaultPorts[where.Scheme] {
		host = net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(ep.Port))
	}
	return host + "/" + path
}

var defaultPorts = map[string]int{"https": 443, "http": 80, "ssh": 22}

// urlSecrets matches the parts of URLs that may contain credentials: user information and
// query.
var urlSecrets = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)(?:[^/\s"'?#]*@)?([^\s"'?#]*)(?:[?#][^\s"']*)?`)

// Redact makes a text safe to show: one line of limited length, without the credentials in
// URLs.
func Redact(text string) string {
	return oneLine(urlSecrets.ReplaceAllString(text, "$1$2"))
}

const maxText = 1000

func oneLine(text string) string { return mask.Line(text, maxText) }

// Shown returns the address of a repository without credentials, as a Status shows it. It is
// empty if the argument is not an address.
func Shown(address string) string {
	where, err := ParseLocation(address)
	if err != nil {
		return ""
	}
	return where.String()
}
