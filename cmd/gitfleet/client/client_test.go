package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A fakeDaemon answers with what a test says, and records the requests.
type fakeDaemon struct {
	code     int
	header   map[string]string
	body     any
	requests []string // METHOD PATH?QUERY BODY
}

func (d *fakeDaemon) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	d.requests = append(d.requests, strings.TrimSpace(req.Method+" "+req.URL.String()+" "+string(body)))
	for name, value := range d.header {
		w.Header().Set(name, value)
	}
	if d.code != 0 {
		w.WriteHeader(d.code)
	}
	if text, plain := d.body.(string); plain {
		io.WriteString(w, text)
		return
	}
	json.NewEncoder(w).Encode(d.body)
}

func (d *fakeDaemon) client(t *testing.T) *Client {
	t.Helper()
	srv := httptest.NewServer(d)
	t.Cleanup(srv.Close)
	c, err := (&Connection{Address: srv.URL + "/"}).Client()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A connection is refused before any request if it cannot be meant, or would send credentials in
// clear.
func TestConnectionIsValidated(t *testing.T) {
	for name, test := range map[string]struct {
		of   Connection
		want string // empty if it is valid
	}{
		"http":                            {Connection{Address: "http://localhost:8080"}, ""},
		"https":                           {Connection{Address: "https://fleet.example.com"}, ""},
		"a token over https":              {Connection{Address: "https://fleet.example.com", TokenFile: "client_test.go"}, ""},
		"no scheme":                       {Connection{Address: "localhost:8080"}, "must be http://HOST:PORT or https://HOST:PORT"},
		"another scheme":                  {Connection{Address: "ftp://localhost"}, "must be http://HOST:PORT or https://HOST:PORT"},
		"no host":                         {Connection{Address: "http://"}, "must be http://HOST:PORT or https://HOST:PORT"},
		"nothing":                         {Connection{}, "must be http://HOST:PORT or https://HOST:PORT"},
		"a token over http":               {Connection{Address: "http://localhost", TokenFile: "token"}, "require https://"},
		"certificates over http":          {Connection{Address: "http://localhost", CAFile: "ca"}, "require https://"},
		"a certificate without a key":     {Connection{Address: "https://localhost", CertFile: "cert"}, "need each other"},
		"a key without a certificate":     {Connection{Address: "https://localhost", KeyFile: "key"}, "need each other"},
		"a certificate that is not there": {Connection{Address: "https://localhost", CAFile: "no/such/file"}, "no/such/file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := test.of.Client()
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// A token is for the daemon that was named: it does not follow a redirect.
func TestRedirectsAreNotFollowed(t *testing.T) {
	elsewhere := &fakeDaemon{body: map[string]any{}}
	other := httptest.NewServer(elsewhere)
	t.Cleanup(other.Close)
	d := &fakeDaemon{code: http.StatusFound, header: map[string]string{"Location": other.URL}, body: "over there"}
	err := d.client(t).Get(t.Context(), "/report", nil, &struct{}{})
	var answer *ResponseError
	if !errors.As(err, &answer) || answer.Code != http.StatusFound || len(elsewhere.requests) != 0 {
		t.Errorf("%v, and %d requests elsewhere", err, len(elsewhere.requests))
	}
}

// An answer other than success is an error that says what a user can do about it.
func TestErrorResponses(t *testing.T) {
	for name, test := range map[string]struct {
		code    int
		body    string
		get     string // what an error of Get is
		act     string // what an error of Act is
		unknown bool
	}{
		"an unknown name":     {404, "there is no placement crp/wbe; did you mean crp/web?\n", "there is no placement crp/wbe; did you mean crp/web?", "there is no placement crp/wbe; did you mean crp/web?", true},
		"an unknown path":     {404, "404 page not found\n", "the daemon answers 404 Not Found: 404 page not found", "404 page not found", false},
		"a refusal":           {400, "the reason is missing", "the daemon answers 400 Bad Request: the reason is missing", "the reason is missing", false},
		"who asks is unknown": {401, "who are you?", "the daemon answers 401 Unauthorized: who are you?\nAuthenticate with --token-file or $GITFLEET_TOKEN_FILE, or with --client-cert and --client-key.", "the daemon answers 401 Unauthorized: who are you?\nAuthenticate with --token-file or $GITFLEET_TOKEN_FILE, or with --client-cert and --client-key.", false},
		"it is starting":      {503, "starting", "the daemon answers 503 Service Unavailable: starting", "the daemon answers 503 Service Unavailable: starting", false},
		"a flood":             {500, strings.Repeat("x", longestError+1000), "the daemon answers 500 Internal Server Error: " + strings.Repeat("x", longestError), "the daemon answers 500 Internal Server Error: " + strings.Repeat("x", longestError), false},
	} {
		t.Run(name, func(t *testing.T) {
			c := (&fakeDaemon{code: test.code, body: test.body}).client(t)
			err := c.Get(t.Context(), "/report", nil, &struct{}{})
			if err == nil || err.Error() != test.get || IsUnknownName(err) != test.unknown {
				t.Errorf("get: %.300v (an unknown name: %t)\nwant %.300s", err, IsUnknownName(err), test.get)
			}
			if _, err := c.Act(t.Context(), "sync", reconciler.Order{}); err == nil || err.Error() != test.act || IsUnknownName(err) != test.unknown {
				t.Errorf("act: %.300v (an unknown name: %t)\nwant %.300s", err, IsUnknownName(err), test.act)
			}
		})
	}
}

// A daemon that is not there is told from a request that was given up, and from a server that is
// no gitfleet.
func TestNoAnswer(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	c, err := (&Connection{Address: gone.URL}).Client()
	if err != nil {
		t.Fatal(err)
	}
	var nobody *UnreachableError
	if err := c.Get(t.Context(), "/report", nil, &struct{}{}); !errors.As(err, &nobody) || nobody.Address != gone.URL || strings.Count(err.Error(), gone.URL) != 1 {
		t.Errorf("nobody is there: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Get(ctx, "/report", nil, &struct{}{}); !errors.Is(err, context.Canceled) || errors.As(err, &nobody) {
		t.Errorf("given up: %v", err)
	}
	another := (&fakeDaemon{body: "<html>"}).client(t)
	if err := another.Get(t.Context(), "/report", nil, &struct{}{}); err == nil || !strings.HasSuffix(err.Error(), "; is --server the address of a gitfleet daemon?") {
		t.Errorf("another server: %v", err)
	}
}

// A request for a report names its part and the report that is known, and the report is valid at
// the time of the response.
func TestReports(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		after string
		of    Subject
		age   string
		asks  string
		want  time.Time
	}{
		"all":                    {"", Subject{}, "", "GET /report", at},
		"all after one":          {"7", Subject{}, "0", "GET /report?after=7", at},
		"a placement":            {"", Subject{Placement: "crp/web"}, "12", "GET /report?placement=crp%2Fweb", at.Add(12 * time.Second)},
		"a cluster after one":    {"7", Subject{Cluster: "ams"}, "", "GET /report?after=7&cluster=ams", at},
		"with an unreadable age": {"", Subject{}, "old", "GET /report", at},
	} {
		t.Run(name, func(t *testing.T) {
			d := &fakeDaemon{header: map[string]string{server.NumberHeader: "8", "Age": test.age}, body: status.Report{At: at}}
			r, number, err := d.client(t).Reports(test.of)(t.Context(), test.after)
			if err != nil || number != "8" || !r.At.Equal(test.want) {
				t.Errorf("number %q at %s: %v", number, r.At, err)
			}
			if !slices.Equal(d.requests, []string{test.asks}) {
				t.Errorf("it asks %q", d.requests)
			}
		})
	}
}

var names = server.Names{Placements: []string{"crp/web", "rp/team/web", "crp/api", "crp/ams"}, Clusters: []string{"ams", "ber"}}

// A name stands for one placement or cluster. Names with their kind need no request.
func TestSubject(t *testing.T) {
	for name, test := range map[string]struct {
		text  string
		want  string
		err   string
		asked bool
	}{
		"a placement with its kind": {"crp/web", "crp/web", "", false},
		"one of a namespace":        {"rp/team/web", "rp/team/web", "", false},
		"a cluster with its kind":   {"mc/ams", "cluster/ams", "", false},
		"one that does not exist":   {"cluster/zrh", "cluster/zrh", "", false},
		"a placement":               {"api", "crp/api", "", true},
		"a cluster":                 {"ber", "cluster/ber", "", true},
		"a placement and a cluster": {"ams", "", "ams can be crp/ams or cluster/ams: write one of them", true},
		"two placements":            {"web", "", "web", true},
		"neither":                   {"wbe", "", "there is no placement or cluster wbe", true},
	} {
		t.Run(name, func(t *testing.T) {
			d := &fakeDaemon{body: names}
			s, err := d.client(t).Subject(t.Context(), test.text)
			switch {
			case test.err == "" && (err != nil || s.String() != test.want):
				t.Errorf("%s, %v", s, err)
			case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
				t.Errorf("%s, %v; want %q", s, err, test.err)
			}
			if (len(d.requests) > 0) != test.asked {
				t.Errorf("it asks %q", d.requests)
			}
		})
	}
}

// The subject of an order may also be an object, with its namespace.
func TestOrderSubject(t *testing.T) {
	for name, test := range map[string]struct{ text, namespace, wantName, wantNamespace string }{
		"a placement":                  {"crp/web", "", "crp/web", ""},
		"a placement by its name":      {"api", "", "crp/api", ""},
		"a cluster":                    {"mc/ams", "", "cluster/ams", ""},
		"an object of a namespace":     {"ConfigMap/web/one", "", "ConfigMap/one", "web"},
		"an object with -n":            {"ConfigMap/one", "web", "ConfigMap/one", "web"},
		"an object without namespaces": {"Namespace/web", "", "Namespace/web", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, namespace, err := (&fakeDaemon{body: names}).client(t).OrderSubject(t.Context(), test.text, test.namespace)
			if err != nil || got != test.wantName || namespace != test.wantNamespace {
				t.Errorf("%s of %q: %v", got, namespace, err)
			}
		})
	}
}

// A history has what its own hash begins with. The daemon knows the rest; if it cannot say, the
// history has no other commit.
func TestContains(t *testing.T) {
	for name, test := range map[string]struct {
		head string
		code int
		body any
		want bool
		fail bool
		asks int
	}{
		"no commit at all":         {"", 0, nil, false, false, 0},
		"the commit itself":        {"abcdef123", 0, nil, true, false, 0},
		"a later one":              {"fff", 0, server.Containment{Contains: true}, true, false, 1},
		"another one":              {"fff", 0, server.Containment{}, false, false, 1},
		"a daemon that cannot say": {"fff", 404, "404 page not found", false, false, 1},
		"a daemon without it":      {"fff", server.StatusUnknownCommit, "oh", false, true, 1},
		"a daemon that fails":      {"fff", 500, "oh", false, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			d := &fakeDaemon{code: test.code, body: test.body}
			if got, err := d.client(t).Contains(t.Context(), test.head, "abcdef"); got != test.want || (err != nil) != test.fail {
				t.Errorf("%t, %v", got, err)
			}
			if len(d.requests) != test.asks {
				t.Errorf("it asks %q", d.requests)
			}
		})
	}
	if all, err := (&fakeDaemon{}).client(t).Contains(t.Context(), "fff", ""); !all || err != nil {
		t.Errorf("a history without an empty commit: %v", err)
	}
}

// A step is one answer of a feed.
type step struct {
	news   string
	number string
	err    error
}

// feedOf returns a feed that gives the steps, then calls end, and records what it was asked after.
func feedOf(asked *[]string, end func(), steps ...step) Feed[string] {
	return func(ctx context.Context, after string) (*string, string, error) {
		*asked = append(*asked, after)
		if len(steps) == 0 {
			end()
			<-ctx.Done()
			return nil, "", ctx.Err()
		}
		s := steps[0]
		steps = steps[1:]
		return &s.news, s.number, s.err
	}
}

// A feed goes on over failures, each of which it yields, and asks again after a second. A report
// that is already known is not yielded again, except after a failure, which it ends.
func TestFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		broken := errors.New("broken")
		var asked, got []string
		begin := time.Now()
		feed := feedOf(&asked, cancel, step{"a", "1", nil}, step{"a", "1", nil}, step{"", "", broken}, step{"a", "1", nil}, step{"c", "", nil}, step{"b", "2", nil})
		for news, err := range feed.All(ctx, "0") {
			text := fmt.Sprint(err)
			if news != nil {
				text = *news
			}
			got = append(got, fmt.Sprintf("%s at %s", text, time.Since(begin)))
		}
		if want := []string{"a at 0s", "broken at 0s", "a at 1s", errNoNumber.Error() + " at 1s", "b at 2s"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if want := []string{"0", "1", "1", "", "1", "", "2"}; !reflect.DeepEqual(asked, want) {
			t.Errorf("asked after %q, want %q", asked, want)
		}
	})
}

// A feed asks no more once nobody wants its values.
func TestFeedEnds(t *testing.T) {
	var asked []string
	for range feedOf(&asked, func() { t.Error("asked too often") }, step{"a", "1", nil}).All(t.Context(), "") {
		break
	}
	if !slices.Equal(asked, []string{""}) {
		t.Errorf("asked after %q", asked)
	}
}
