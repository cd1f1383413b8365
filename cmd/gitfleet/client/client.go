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

	"github.com/gitfleet/gitfleet/reconciler/server"
)

// A Connection is the address and the credentials of a daemon. Every command that uses a daemon
// binds one, and creates its client from it.
type Connection struct {
	Address, TokenFile, CAFile, CertFile, KeyFile string
	// Config is the path of the configuration file of the daemon that the command is about; empty if the command has no flag
	// for it. If it is set, the daemon of another fleet refuses the requests.
	Config string
}

// An option is a flag of the connection, and the environment variable that stands for it.
type option struct {
	name, env, usage, standard string
	value                      *string
}

func (c *Connection) options() []option {
	return []option{
		{"server", ServerEnv, "address of the daemon", standardAddress(), &c.Address},
		{"token-file", "GITFLEET_TOKEN_FILE", "file with the token to authenticate with", "", &c.TokenFile},
		{"ca-file", "GITFLEET_CA_FILE", "file with the CA certificates that verify the daemon's certificate", "", &c.CAFile},
		{"client-cert", "GITFLEET_CLIENT_CERT", "file with the client certificate", "", &c.CertFile},
		{"client-key", "GITFLEET_CLIENT_KEY", "file with the key of the client certificate", "", &c.KeyFile},
	}
}

// connectionAnnotation marks the flags of the connection, which help shows last.
const connectionAnnotation = "gitfleet.dev/connection"

// IsConnectionFlag reports whether a flag is one of the connection.
func IsConnectionFlag(f *pflag.Flag) bool {
	_, marked := f.Annotations[connectionAnnotation]
	return marked
}

// Bind adds the flags of the connection to those of a command.
func (c *Connection) Bind(f *pflag.FlagSet) {
	for _, o := range c.options() {
		f.StringVar(o.value, o.name, cmp.Or(os.Getenv(o.env), o.standard), o.usage+"; also $"+o.env)
		f.Lookup(o.name).DefValue = o.standard // help is the same on every machine
		f.SetAnnotation(o.name, connectionAnnotation, nil)
	}
}

// BindAddress binds only the address; the credentials come from the environment.
func (c *Connection) BindAddress(f *pflag.FlagSet) {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.Bind(all)
	f.AddFlag(all.Lookup("server"))
}

// ConnectionOf returns the connection that the flags of a command describe.
func ConnectionOf(f *pflag.FlagSet) Connection {
	var c Connection
	for _, o := range c.options() {
		*o.value, _ = f.GetString(o.name)
	}
	return c
}

// WithClient returns the function of a command that needs a client of the connection.
func (c *Connection) WithClient(run func(cmd *cobra.Command, args []string, c *Client) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		client, err := c.Client()
		if err != nil {
			return err
		}
		return run(cmd, args, client)
	}
}

// Client validates the connection and returns a client. It sends no request.
func (c *Connection) Client() (*Client, error) {
	at, err := url.Parse(c.Address)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, fmt.Errorf("--server %q: must be http://HOST:PORT or https://HOST:PORT", c.Address)
	}
	if at.Scheme == "http" && (c.TokenFile != "" || c.CAFile != "" || c.CertFile != "" || c.KeyFile != "") {
		return nil, fmt.Errorf("--server %s: a token or certificates require https://", c.Address)
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		return nil, errors.New("--client-cert and --client-key need each other")
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
	return &Client{Address: strings.TrimSuffix(c.Address, "/"), http: httpClient, wanted: c.wantedFleet()}, nil
}

// A Client sends requests to a daemon.
type Client struct {
	Address string
	http    *http.Client
	wanted  wantedFleet
}

// An UnreachableError says that no daemon answers at an address.
type UnreachableError struct {
	Address string
	Err     error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no daemon answers at %s: %v\nStart one with \"gitfleet run --config gitfleet.yaml\", or set its address with --server or $%s.",
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
		text += "\nAuthenticate with --token-file or $GITFLEET_TOKEN_FILE, or with --client-cert and --client-key."
	}
	return text
}

// isUnknownName reports whether a name is unknown, and not the path.
func (e *ResponseError) isUnknownName() bool {
	return e.Code == http.StatusNotFound && strings.HasPrefix(e.text, "there is no ")
}

// IsRefusal reports whether an error is a response that rejects the request itself as wrong or
// not allowed, so that repeating it is of no use.
func IsRefusal(err error) bool {
	if _, another := errors.AsType[*AnotherFleetError](err); another {
		return true
	}
	answer, ok := errors.AsType[*ResponseError](err)
	return ok && answer.Code/100 == 4 && answer.Code != http.StatusTooManyRequests && answer.Code != server.StatusUnknownCommit
}

// longestError is how much of an error response is read.
const longestError = 16 << 10

// Do sends a request, with a body if it is not nil, and returns the response if it is a
// success. Parameters of the query that are empty are left out. The caller closes the body of the
// response.
func (c *Client) Do(ctx context.Context, method, path string, query url.Values, body any) (*http.Response, error) {
	resp, err := c.send(ctx, method, path, query, body, c.wanted)
	if another, ok := errors.AsType[*AnotherFleetError](err); ok && another.wanted.clone != nil && !another.wanted.clone.isAnother(another.source) {
		return c.send(ctx, method, path, query, body, wantedFleet{})
	}
	return resp, err
}

// send is Do for a daemon of a fleet.
func (c *Client) send(ctx context.Context, method, path string, query url.Values, body any, wanted wantedFleet) (*http.Response, error) {
	query = maps.Clone(query)
	maps.DeleteFunc(query, func(_ string, values []string) bool { return values[0] == "" })
	address := strings.TrimSuffix(c.Address+path+"?"+query.Encode(), "?")
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
	wanted.ask(req.Header)
	resp, err := c.http.Do(req)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
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
		if resp.StatusCode == http.StatusMisdirectedRequest && wanted != (wantedFleet{}) {
			return nil, &AnotherFleetError{c.Address, strings.TrimSpace(string(text)), resp.Header.Get(server.SourceHeader), wanted}
		}
		return nil, &ResponseError{resp.StatusCode, strings.TrimSpace(string(text))}
	}
	return resp, nil
}

// Get requests JSON and decodes it.
func (c *Client) Get(ctx context.Context, path string, query url.Values, into any) error {
	_, _, err := c.newest(ctx, path, query, into)
	return err
}

// newest is Get for a path whose response depends on the newest report. It returns the number and
// the age of the report.
func (c *Client) newest(ctx context.Context, path string, query url.Values, into any) (number string, age time.Duration, err error) {
	resp, err := c.Do(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return "", 0, err
	}
	defer resp.Body.Close()
	seconds, _ := strconv.Atoi(resp.Header.Get("Age")) // zero without the header
	return resp.Header.Get(server.NumberHeader), time.Duration(seconds) * time.Second, decodeResponse(resp, into)
}

func decodeResponse(resp *http.Response, into any) error {
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return fmt.Errorf("read the daemon's answer: %w; is --server the address of a gitfleet daemon?", err)
	}
	return nil
}
