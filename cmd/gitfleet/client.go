// Package client makes requests to a daemon.
package main

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
	serverEnv     = "GITFLEET_SERVER"
	tokenFileEnv  = "GITFLEET_TOKEN_FILE"
	caFileEnv     = "GITFLEET_CA_FILE"
	clientCertEnv = "GITFLEET_CLIENT_CERT"
	clientKeyEnv  = "GITFLEET_CLIENT_KEY"
)

// A connection is the address and credentials of a daemon. Every command that makes requests to
// a daemon binds one, and makes its client from it.
type connection struct {
	address, tokenFile, caFile, certFile, keyFile string
}

func (c *connection) bind(f *pflag.FlagSet) {
	c.bindAddress(f)
	f.StringVar(&c.tokenFile, "token-file", c.tokenFile, "file with the token that the daemon asks for; also $"+tokenFileEnv)
	f.StringVar(&c.caFile, "ca-file", c.caFile, "file with the certificates that may vouch for the daemon; also $"+caFileEnv)
	f.StringVar(&c.certFile, "client-cert", c.certFile, "file with the certificate to show to the daemon; also $"+clientCertEnv)
	f.StringVar(&c.keyFile, "client-key", c.keyFile, "file with the key of that certificate; also $"+clientKeyEnv)
	for _, name := range []string{"token-file", "ca-file", "client-cert", "client-key"} {
		f.Lookup(name).DefValue = "" // the same help on every machine
		f.SetAnnotation(name, connectionAnnotation, nil)
	}
}

// connectionAnnotation marks the flags of the connection, which help shows last.
const connectionAnnotation = "gitfleet.dev/connection"

func isConnectionFlag(f *pflag.Flag) bool {
	_, marked := f.Annotations[connectionAnnotation]
	return marked
}

// connectionOf returns the connection that the flags of a command describe.
func connectionOf(f *pflag.FlagSet) connection {
	var c connection
	for name, value := range map[string]*string{
		"server": &c.address, "token-file": &c.tokenFile, "ca-file": &c.caFile, "client-cert": &c.certFile, "client-key": &c.keyFile,
	} {
		*value, _ = f.GetString(name)
	}
	return c
}

// bindAddress binds only the address; the credentials come from the environment.
func (c *connection) bindAddress(f *pflag.FlagSet) {
	c.tokenFile, c.caFile = os.Getenv(tokenFileEnv), os.Getenv(caFileEnv)
	c.certFile, c.keyFile = os.Getenv(clientCertEnv), os.Getenv(clientKeyEnv)
	f.StringVar(&c.address, "server", cmp.Or(os.Getenv(serverEnv), "http://"+settings.Default().Listen), "address of the daemon; also $"+serverEnv)
	f.Lookup("server").DefValue = "http://" + settings.Default().Listen
	f.SetAnnotation("server", connectionAnnotation, nil)
}

// client validates the connection and returns a client, without a request.
func (c *connection) client() (*client, error) {
	at, err := url.Parse(c.address)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, fmt.Errorf("--server %q: write http://HOST:PORT or https://HOST:PORT", c.address)
	}
	if at.Scheme == "http" && (c.tokenFile != "" || c.caFile != "" || c.certFile != "" || c.keyFile != "") {
		return nil, fmt.Errorf("--server %s: a token or certificates go with https:// only", c.address)
	}
	if (c.certFile == "") != (c.keyFile == "") {
		return nil, errors.New("--client-cert and --client-key go together")
	}
	httpClient, err := rest.HTTPClientFor(&rest.Config{
		Host: c.address, BearerTokenFile: c.tokenFile, UserAgent: "gitfleet",
		TLSClientConfig: rest.TLSClientConfig{CAFile: c.caFile, CertFile: c.certFile, KeyFile: c.keyFile},
	})
	if err != nil {
		return nil, fmt.Errorf("--server %s: %w", c.address, err)
	}
	// The token is for the daemon that was named only.
	httpClient.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client{address: strings.TrimSuffix(c.address, "/"), http: httpClient}, nil
}

// A client makes requests to a daemon.
type client struct {
	address string
	http    *http.Client
}

// A silentError says that no daemon answers at an address.
type silentError struct {
	address string
	err     error
}

func (e *silentError) Error() string {
	return fmt.Sprintf("no daemon answers at %s: %v\nStart one with \"gitfleet run --config gitfleet.yaml\", or say where it is with --server or $%s.",
		e.address, e.err, serverEnv)
}

func (e *silentError) Unwrap() error { return e.err }

// An answerError is an error response of the daemon.
type answerError struct {
	code int
	text string
}

func (e *answerError) Error() string {
	if e.isUnknownName() {
		return e.text
	}
	text := fmt.Sprintf("the daemon answers %d %s: %s", e.code, http.StatusText(e.code), e.text)
	if e.code == http.StatusUnauthorized {
		text += "\nSay who asks with --token-file or $" + tokenFileEnv + ", or with --client-cert and --client-key."
	}
	return text
}

// isUnknownName reports whether a name, and not the path, is unknown.
func (e *answerError) isUnknownName() bool {
	return e.code == http.StatusNotFound && strings.HasPrefix(e.text, "there is no ")
}

// longestError bounds how much of an error response is read.
const longestError = 16 << 10

// do makes a request, with a body if it is not nil, and returns the response if it is
// successful; the caller closes its body.
func (c *client) do(ctx context.Context, method, path string, query url.Values, body any) (*http.Response, error) {
	address := c.address + path
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
			err = wrapped.Err // the address is in the message already
		}
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, &silentError{c.address, err}
	}
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, longestError))
		return nil, &answerError{resp.StatusCode, strings.TrimSpace(string(text))}
	}
	return resp, nil
}

// get requests JSON and decodes it.
func (c *client) get(ctx context.Context, path string, query url.Values, into any) error {
	resp, err := c.do(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return understand(resp, into)
}

func understand(resp *http.Response, into any) error {
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return fmt.Errorf("read the daemon's answer: %w; is --server a gitfleet?", err)
	}
	return nil
}

// report returns the newest report.
func (c *client) report(ctx context.Context) (*status.Report, error) {
	return c.only(ctx, part{})
}

// A part of a report is about one placement, or one cluster; about everything if
// both are empty.
type part struct{ placement, cluster string }

// only returns the newest report about a part.
func (c *client) only(ctx context.Context, of part) (*status.Report, error) {
	r, _, err := c.next(ctx, "", of)
	return r, err
}

// next returns the newest report and its number. Given the number of a known report, it waits
// for a newer one, up to half a minute. The report's time is that of the response: it is valid
// until there is a newer one.
func (c *client) next(ctx context.Context, after string, of part) (*status.Report, string, error) {
	query := url.Values{}
	if of.placement != "" {
		query.Set("placement", of.placement)
	}
	if of.cluster != "" {
		query.Set("cluster", of.cluster)
	}
	r := &status.Report{}
	number, age, err := c.newest(ctx, "/report", query, after, r)
	r.At = r.At.Add(age)
	return r, number, err
}

// newest requests a path of the newest report, and returns the report's number and age. Given
// the number of a known report, it waits for a newer one, up to half a minute.
func (c *client) newest(ctx context.Context, path string, query url.Values, after string, into any) (number string, age time.Duration, err error) {
	if after != "" {
		query = maps.Clone(query)
		if query == nil {
			query = url.Values{}
		}
		query.Set("after", after)
	}
	resp, err := c.do(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return "", 0, err
	}
	defer resp.Body.Close()
	seconds, _ := strconv.Atoi(resp.Header.Get("Age")) // none if there is no such header
	return resp.Header.Get(server.NumberHeader), time.Duration(seconds) * time.Second, understand(resp, into)
}

// report asks the daemon for its newest report.
func (c *connection) report(cmd *cobra.Command) (*status.Report, error) {
	asks, err := c.client()
	if err != nil {
		return nil, err
	}
	return asks.report(cmd.Context())
}
