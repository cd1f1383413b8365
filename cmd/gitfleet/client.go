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

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// Environment variables stand in for the flags of a connection.
const (
	serverEnv     = "GITFLEET_SERVER"
	tokenFileEnv  = "GITFLEET_TOKEN_FILE"
	caFileEnv     = "GITFLEET_CA_FILE"
	clientCertEnv = "GITFLEET_CLIENT_CERT"
	clientKeyEnv  = "GITFLEET_CLIENT_KEY"
)

// A connection says where the daemon is and who asks. Every command that asks
// a daemon binds one, and makes its client of it.
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
		f.Lookup(name).DefValue = "" // the same help everywhere
		f.SetAnnotation(name, connectionAnnotation, nil)
	}
}

// connectionAnnotation marks the flags that help shows last, as those of the
// connection.
const connectionAnnotation = "gitfleet.dev/connection"

func isConnectionFlag(f *pflag.Flag) bool {
	_, marked := f.Annotations[connectionAnnotation]
	return marked
}

// bindAddress binds the address alone: who asks is in the environment.
func (c *connection) bindAddress(f *pflag.FlagSet) {
	c.tokenFile, c.caFile = os.Getenv(tokenFileEnv), os.Getenv(caFileEnv)
	c.certFile, c.keyFile = os.Getenv(clientCertEnv), os.Getenv(clientKeyEnv)
	f.StringVar(&c.address, "server", cmp.Or(os.Getenv(serverEnv), "http://"+defaultConfig().Listen), "address of the daemon; also $"+serverEnv)
	f.Lookup("server").DefValue = "http://" + defaultConfig().Listen
	f.SetAnnotation("server", connectionAnnotation, nil)
}

// client checks the connection, and does not use it yet.
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
	// A token is for the daemon that was named, and nobody it points to.
	httpClient.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client{address: strings.TrimSuffix(c.address, "/"), http: httpClient}, nil
}

// A client asks a daemon.
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

// An answerError is an answer of the daemon that is not what was asked for.
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

// isUnknownName reports whether a name, and not an address, is unknown.
func (e *answerError) isUnknownName() bool {
	return e.code == http.StatusNotFound && strings.HasPrefix(e.text, "there is no ")
}

// longestError is how much is read of an answer that is an error.
const longestError = 16 << 10

// do asks, with a body if it is not nil, and returns the answer if it is a good
// one; the caller closes its body.
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
			err = wrapped.Err // the address is told already
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

// get asks for JSON and reads it into a value.
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

// only returns what the newest report says of a part.
func (c *client) only(ctx context.Context, of part) (*status.Report, error) {
	r, _, err := c.next(ctx, "", of)
	return r, err
}

// next returns the newest report and its number; with the number of one already
// seen it waits for a newer, up to half a minute. The report's time is that of the
// answer: it holds until there is a newer.
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

// newest reads what is told at a path of the newest report, and returns the
// report's number, and how long ago it was made; with the number of one already seen it waits for a newer, up
// to half a minute.
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
	seconds, _ := strconv.Atoi(resp.Header.Get("Age")) // none if it does not say
	return resp.Header.Get(server.NumberHeader), time.Duration(seconds) * time.Second, understand(resp, into)
}

// A feed tells something anew whenever there is a newer report.
type feed[T any] func(ctx context.Context, after string) (news *T, number string, err error)

// reports are told of a part, or whole.
func (c *client) reports(of part) feed[status.Report] {
	return func(ctx context.Context, after string) (*status.Report, string, error) {
		return c.next(ctx, after, of)
	}
}

// overviews are told at a glance.
func (c *client) overviews() feed[overview] {
	return func(ctx context.Context, after string) (*overview, string, error) {
		o := &overview{}
		number, age, err := c.newest(ctx, overviewPath, nil, after, o)
		o.age = age
		return o, number, err
	}
}

// follow shows what is new until ctx is done or show says that it was the last.
func (ask feed[T]) follow(ctx context.Context, show func(*T) (more bool, err error)) error {
	after := ""
	for {
		news, number, err := ask(ctx, after)
		if errors.Is(err, context.Canceled) {
			return nil
		}
		if err != nil {
			return err
		}
		if number == after {
			continue
		}
		after = number
		if more, err := show(news); err != nil || !more {
			return err
		}
	}
}

// A bulletin is what is new, or why nothing can be told.
type bulletin[T any] struct {
	news *T
	err  error
}

// retry is how long a daemon that does not answer is left alone.
const retry = time.Second

// keep sends what is new, and each reason why nothing can be told, until ctx is
// done.
func (ask feed[T]) keep(ctx context.Context, updates chan<- bulletin[T]) {
	after := ""
	for ctx.Err() == nil {
		news, number, err := ask(ctx, after)
		if ctx.Err() != nil {
			return // what came of it is nobody's concern any more
		}
		if err == nil && number == after {
			continue
		}
		if err != nil {
			news = nil
		}
		select {
		case <-ctx.Done():
			return
		case updates <- bulletin[T]{news, err}:
		}
		if err == nil {
			after = number
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
	}
}
