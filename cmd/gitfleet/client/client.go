// Package client sends requests to a daemon.
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// The environment variables for the flags of a connection.
const (
	ServerEnv     = "GITFLEET_SERVER"
	tokenFileEnv  = "GITFLEET_TOKEN_FILE"
	CAFileEnv     = "GITFLEET_CA_FILE"
	clientCertEnv = "GITFLEET_CLIENT_CERT"
	clientKeyEnv  = "GITFLEET_CLIENT_KEY"
)

// A Connection is the address and the credentials of a daemon. Every command that uses a daemon
// binds one, and creates its client from it.
type Connection struct {
	Address, TokenFile, CAFile, CertFile, KeyFile string
}

// Bind adds the flags of the connection to those of a command.
func (c *Connection) Bind(f *pflag.FlagSet) {
	c.BindAddress(f)
	f.StringVar(&c.TokenFile, "token-file", c.TokenFile, "file with the token that the daemon asks for; also $"+tokenFileEnv)
	f.StringVar(&c.CAFile, "ca-file", c.CAFile, "file with the certificates that may vouch for the daemon; also $"+CAFileEnv)
	f.StringVar(&c.CertFile, "client-cert", c.CertFile, "file with the certificate to show to the daemon; also $"+clientCertEnv)
	f.StringVar(&c.KeyFile, "client-key", c.KeyFile, "file with the key of that certificate; also $"+clientKeyEnv)
	for _, name := range []string{"token-file", "ca-file", "client-cert", "client-key"} {
		f.Lookup(name).DefValue = "" // help is the same on every machine
		f.SetAnnotation(name, connectionAnnotation, nil)
	}
}

// connectionAnnotation marks the flags of the connection, which help shows last.
const connectionAnnotation = "gitfleet.dev/connection"

// IsConnectionFlag reports whether a flag is one of the connection.
func IsConnectionFlag(f *pflag.Flag) bool {
	_, marked := f.Annotations[connectionAnnotation]
	return marked
}

// ConnectionOf returns the connection that the flags of a command describe.
func ConnectionOf(f *pflag.FlagSet) Connection {
	var c Connection
	for name, value := range map[string]*string{
		"server": &c.Address, "token-file": &c.TokenFile, "ca-file": &c.CAFile, "client-cert": &c.CertFile, "client-key": &c.KeyFile,
	} {
		*value, _ = f.GetString(name)
	}
	return c
}

// BindAddress binds only the address; the credentials come from the environment.
func (c *Connection) BindAddress(f *pflag.FlagSet) {
	c.TokenFile, c.CAFile = os.Getenv(tokenFileEnv), os.Getenv(CAFileEnv)
	c.CertFile, c.KeyFile = os.Getenv(clientCertEnv), os.Getenv(clientKeyEnv)
	f.StringVar(&c.Address, "server", cmp.Or(os.Getenv(ServerEnv), "http://"+settings.Default().Listen), "address of the daemon; also $"+ServerEnv)
	f.Lookup("server").DefValue = "http://" + settings.Default().Listen
	f.SetAnnotation("server", connectionAnnotation, nil)
}

// Client validates the connection and returns a client. It sends no request.
func (c *Connection) Client() (*Client, error) {
	at, err := url.Parse(c.Address)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, fmt.Errorf("--server %q: write http://HOST:PORT or https://HOST:PORT", c.Address)
	}
	if at.Scheme == "http" && (c.TokenFile != "" || c.CAFile != "" || c.CertFile != "" || c.KeyFile != "") {
		return nil, fmt.Errorf("--server %s: a token or certificates go with https:// only", c.Address)
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		return nil, errors.New("--client-cert and --client-key go together")
	}
	httpClient, err := rest.HTTPClientFor(&rest.Config{
		Host: c.Address, BearerTokenFile: c.TokenFile, UserAgent: "gitfleet",
		TLSClientConfig: rest.TLSClientConfig{CAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile},
	})
	if err != nil {
		return nil, fmt.Errorf("--server %s: %w", c.Address, err)
	}
	// The token must be sent only to the daemon that was named.
	httpClient.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{Address: strings.TrimSuffix(c.Address, "/"), http: httpClient}, nil
}

// A Client sends requests to a daemon.
type Client struct {
	Address string
	http    *http.Client
}

// An UnreachableError says that no daemon answers at an address.
type UnreachableError struct {
	Address string
	Err     error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no daemon answers at %s: %v\nStart one with \"gitfleet run --config gitfleet.yaml\", or say where it is with --server or $%s.",
		e.Address, e.Err, ServerEnv)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// A ResponseError is an error response of the daemon.
type ResponseError struct {
	Code int
	text string
}

func (e *ResponseError) Error() string {
	if e.isUnknownName() {
		return e.text
	}
	text := fmt.Sprintf("the daemon answers %d %s: %s", e.Code, http.StatusText(e.Code), e.text)
	if e.Code == http.StatusUnauthorized {
		text += "\nSay who asks with --token-file or $" + tokenFileEnv + ", or with --client-cert and --client-key."
	}
	return text
}

// isUnknownName reports whether a name is unknown, and not the path.
func (e *ResponseError) isUnknownName() bool {
	return e.Code == http.StatusNotFound && strings.HasPrefix(e.text, "there is no ")
}

// longestError is how much of an error response is read.
const longestError = 16 << 10

// Do sends a request, with a body if it is not nil, and returns the response if it is a
// success. The caller closes the body of the response.
func (c *Client) Do(ctx context.Context, method, path string, query url.Values, body any) (*http.Response, error) {
	address := c.Address + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	var content io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, content)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // the message already has the address
		}
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, &UnreachableError{c.Address, err}
	}
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, longestError))
		return nil, &ResponseError{resp.StatusCode, strings.TrimSpace(string(text))}
	}
	return resp, nil
}

// Get requests JSON and decodes it.
func (c *Client) Get(ctx context.Context, path string, query url.Values, into any) error {
	resp, err := c.Do(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return decodeResponse(resp, into)
}

func decodeResponse(resp *http.Response, into any) error {
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return fmt.Errorf("read the daemon's answer: %w; is --server a gitfleet?", err)
	}
	return nil
}

// Report returns the newest report.
func (c *Client) Report(ctx context.Context) (*status.Report, error) {
	return c.PartialReport(ctx, Part{})
}

// A Part is the part of a report about one placement or one cluster; everything if both are
// empty.
type Part struct{ Placement, Cluster string }

// PartialReport returns the newest report about a part.
func (c *Client) PartialReport(ctx context.Context, of Part) (*status.Report, error) {
	r, _, err := c.NextReport(ctx, "", of)
	return r, err
}

// NextReport returns the newest report and its number. If after is the number of a known
// report, it waits up to half a minute for a newer one. The time of the report is that of the
// response, since a report is valid until there is a newer one.
func (c *Client) NextReport(ctx context.Context, after string, of Part) (*status.Report, string, error) {
	query := url.Values{}
	if of.Placement != "" {
		query.Set("placement", of.Placement)
	}
	if of.Cluster != "" {
		query.Set("cluster", of.Cluster)
	}
	r := &status.Report{}
	number, age, err := c.Newest(ctx, "/report", query, after, r)
	r.At = r.At.Add(age)
	return r, number, err
}

// Newest requests a path of the newest report, and returns the report's number and age. If
// after is the number of a known report, it waits up to half a minute for a newer one.
func (c *Client) Newest(ctx context.Context, path string, query url.Values, after string, into any) (number string, age time.Duration, err error) {
	if after != "" {
		query = maps.Clone(query)
		if query == nil {
			query = url.Values{}
		}
		query.Set("after", after)
	}
	resp, err := c.Do(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return "", 0, err
	}
	defer resp.Body.Close()
	seconds, _ := strconv.Atoi(resp.Header.Get("Age")) // zero without the header
	return resp.Header.Get(server.NumberHeader), time.Duration(seconds) * time.Second, decodeResponse(resp, into)
}

// Report requests the newest report from the daemon.
func (c *Connection) Report(cmd *cobra.Command) (*status.Report, error) {
	asks, err := c.Client()
	if err != nil {
		return nil, err
	}
	return asks.Report(cmd.Context())
}
