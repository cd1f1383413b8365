package gate

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/remote"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

const token = "s3cr3t-token"

// asks asks one server once.
func asks(t *testing.T, s Server, spec api.RolloutGateSpec) placement.GateAnswer {
	t.Helper()
	return asksFor(t, requestTimeout, s, spec)
}

func asksFor(t *testing.T, timeout time.Duration, s Server, spec api.RolloutGateSpec) placement.GateAnswer {
	t.Helper()
	a := New(Config{Servers: []Server{s}, Getenv: os.Getenv, Log: slog.New(slog.DiscardHandler)})
	a.timeout = timeout
	return a.ask(t.Context(), placement.GateQuestion{Spec: &spec})
}

func promSpec(address, condition string) api.RolloutGateSpec {
	return api.RolloutGateSpec{Prometheus: &api.PrometheusGate{Address: address, Query: "errors", Condition: condition}}
}

// vector is Prometheus's answer with these values.
func vector(values ...string) string {
	var out []string
	for i, v := range values {
		out = append(out, fmt.Sprintf(`{"metric":{"pod":"web-%d"},"value":[1700000000.5,%q]}`, i, v))
	}
	return `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(out, ",") + `]}}`
}

// An answer of Prometheus is good if every value satisfies the condition, and bad if one does not. Everything else cannot be evaluated.
func TestAnswersOfPrometheus(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		body   string
		want   placement.GateVerdict
		text   string
	}{
		"good":                 {200, vector("0.001"), placement.GateGood, "the value is 0.001, which is < 0.01"},
		"several":              {200, vector("0.001", "0"), placement.GateGood, "all 2 values are < 0.01"},
		"a scalar":             {200, `{"status":"success","data":{"resultType":"scalar","result":[1700000000,"0"]}}`, placement.GateGood, "the value is 0"},
		"bad":                  {200, vector("0.5"), placement.GateBad, `the value of {pod="web-0"} is 0.5, which is not < 0.01`},
		"one of several":       {200, vector("NaN", "0.5"), placement.GateBad, `of {pod="web-1"} is 0.5`},
		"infinite":             {200, vector("+Inf"), placement.GateBad, "is +Inf"},
		"no number":            {200, vector("0", "NaN"), placement.GateUnknown, `the value of {pod="web-1"} is not a number (NaN)`},
		"empty":                {200, vector(), placement.GateUnknown, "the result of the query is empty"},
		"a range":              {200, `{"status":"success","data":{"resultType":"matrix","result":[]}}`, placement.GateUnknown, `the result is a "matrix"`},
		"incomplete":           {200, `{"status":"success","warnings":["store is down"],"data":{"resultType":"scalar","result":[1,"0"]}}`, placement.GateUnknown, "the result may be incomplete: store is down"},
		"an invalid query":     {400, `{"status":"error","errorType":"bad_data","error":"1:3: parse error"}`, placement.GateUnknown, "the query fails: 1:3: parse error"},
		"no values":            {200, `{"status":"success","data":{"resultType":"vector","result":[{"value":["x"]}]}}`, placement.GateUnknown, "not that of a query"},
		"something else":       {200, `{"hello":"world"}`, placement.GateUnknown, "does not answer like Prometheus"},
		"no JSON":              {200, `good`, placement.GateUnknown, "does not answer like Prometheus"},
		"a page":               {502, `<html><title>Bad gateway</title></html>`, placement.GateUnknown, "answers 502: a web page: Bad gateway"},
		"unauthorized":         {401, `who are you, ` + token + `?`, placement.GateUnknown, "answers 401: who are you, ***?"},
		"an error with a name": {422, `{"status":"error","error":"denied to ` + token + `"}`, placement.GateUnknown, "the query fails: denied to ***"},
		"a redirect":           {302, ``, placement.GateUnknown, "answers 302"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/base/api/v1/query" || r.FormValue("query") != "errors" || r.Header.Get("Authorization") != "Bearer "+token {
					t.Errorf("it is asked for %s with %v", r.URL, r.Header)
				}
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(test.status)
				fmt.Fprint(w, test.body)
			}))
			defer srv.Close()
			got := asks(t, trusted(t, srv, "/base"), promSpec(srv.URL+"/base", "< 0.01"))
			if got.Verdict != test.want || !strings.Contains(got.Text, test.text) || strings.Contains(got.Text, token) {
				t.Errorf("%s: %q, want %s: %q", got.Verdict, got.Text, test.want, test.text)
			}
		})
	}
}

// An answer over HTTP is good if it has the expected status and its JSON satisfies the condition. What says nothing of that cannot be
// evaluated.
func TestAnswersOverHTTP(t *testing.T) {
	const ready = "response.body.ready && response.body.errors < 3"
	for name, test := range map[string]struct {
		status, expected int
		condition, body  string
		want             placement.GateVerdict
		text             string
	}{
		"good":                {200, 0, "", "fine", placement.GateGood, "/ready?service=web answers 200"},
		"another expected":    {204, 204, "", "", placement.GateGood, "answers 204"},
		"another status":      {503, 0, "", "overloaded, " + token, placement.GateBad, "answers 503: overloaded, ***, not 200"},
		"a redirect":          {302, 0, "", "", placement.GateBad, "answers 302"},
		"wrong credentials":   {401, 0, "", "who are you?", placement.GateUnknown, "answers 401: who are you?"},
		"too often":           {429, 0, "", "", placement.GateUnknown, "answers 429"},
		"a condition":         {200, 0, ready, `{"ready":true,"errors":2}`, placement.GateGood, "is: response.body.ready"},
		"not satisfied":       {200, 0, ready, `{"ready":true,"errors":3}`, placement.GateBad, "is not: response.body.ready"},
		"a missing field":     {200, 0, ready, `{"ready":true}`, placement.GateUnknown, "no such key: errors"},
		"no bool":             {200, 0, "response.body", `"yes"`, placement.GateUnknown, "it gives a string"},
		"no JSON":             {200, 0, ready, `<html>`, placement.GateUnknown, "is not JSON"},
		"its status":          {418, 418, "response.status == 418", `1`, placement.GateGood, "response.status"},
		"an expensive answer": {200, 0, "response.body.all(a, response.body.all(b, a + b > 0))", "[" + strings.Repeat("1,", 400) + "1]", placement.GateUnknown, "costs more than"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.String() != "/ready?service=web" || r.Header.Get("Authorization") != "Bearer "+token {
					t.Errorf("it is asked for %s with %v", r.URL, r.Header)
				}
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(test.status)
				fmt.Fprint(w, test.body)
			}))
			defer srv.Close()
			got := asks(t, trusted(t, srv, ""), api.RolloutGateSpec{HTTP: &api.HTTPGate{URL: srv.URL + "/ready?service=web", Status: test.expected, Condition: test.condition}})
			if got.Verdict != test.want || !strings.Contains(got.Text, test.text) || strings.Contains(got.Text, token) {
				t.Errorf("%s: %q, want %s: %q", got.Verdict, got.Text, test.want, test.text)
			}
		})
	}
}

// trusted is a server with a token and a certificate that is trusted.
func trusted(t *testing.T, srv *httptest.Server, path string) Server {
	t.Helper()
	ca, secret := filepath.Join(t.TempDir(), "ca.pem"), filepath.Join(t.TempDir(), "token")
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	if err := os.WriteFile(ca, bundle, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(secret, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return Server{URL: srv.URL + path, Auth: remote.Auth{Bearer: remote.SecretSource{File: secret}, CABundle: ca}}
}

// A server that is not allowed, is down, does not end its answer, answers too much, or cannot be trusted lets nothing pass, and gets no
// credentials that are not its own.
func TestServersThatDoNotAnswer(t *testing.T) {
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	}))
	defer endless.Close()
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer slow.Close()
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	untrusted.StartTLS()
	defer untrusted.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, test := range map[string]struct{ allowed, address, text string }{
		"endless":            {endless.URL, endless.URL, "is larger than 1024 KiB"},
		"slow":               {slow.URL, slow.URL, "has not answered within 200ms"},
		"down":               {gone.URL, gone.URL, "connection refused"},
		"not trusted":        {untrusted.URL, untrusted.URL, "certificate"},
		"not allowed":        {endless.URL, slow.URL, "does not allow " + slow.URL},
		"beside what is":     {endless.URL + "/prom", endless.URL + "/promotions", "does not allow"},
		"above what is":      {endless.URL + "/prom", endless.URL, "does not allow"},
		"a way out":          {endless.URL + "/prom", endless.URL + "/prom/../x", "does not allow"},
		"an escaped way out": {endless.URL + "/prom", endless.URL + "/prom/%2e%2e/x", "does not allow"},
		"credentials in it":  {endless.URL, strings.Replace(endless.URL, "//", "//u:p@", 1), "does not allow"},
	} {
		timeout := requestTimeout
		if name == "slow" {
			timeout = 200 * time.Millisecond
		}
		got := asksFor(t, timeout, Server{URL: test.allowed}, promSpec(test.address, "< 1"))
		if got.Verdict != placement.GateUnknown || !strings.Contains(got.Text, test.text) {
			t.Errorf("%s: %s %q, want %q", name, got.Verdict, got.Text, test.text)
		}
	}
}

// Run asks what is set at its interval, and nothing else. A server that hangs keeps no other from being asked.
func TestAskerAsksWhatIsSet(t *testing.T) {
	var asked atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, vector("1"))
	}))
	defer srv.Close()
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer slow.Close()
	answers := make(chan placement.GateAnswer, 100)
	a := New(Config{Servers: []Server{{URL: srv.URL}, {URL: slow.URL}}, Getenv: os.Getenv, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- a.Run(ctx) }()

	question := func(address, gate string, last time.Time) placement.GateQuestion {
		spec := promSpec(address, "> 0")
		spec.Prometheus.Interval = "1h"
		return placement.GateQuestion{GateRound: placement.GateRound{Run: "r", Stage: "canary", Gate: gate}, Spec: &spec, Last: last}
	}
	var hanging []placement.GateQuestion
	for i := range 3 * maxAtOnce {
		hanging = append(hanging, question(slow.URL, fmt.Sprint("slow-", i), time.Time{}))
	}
	receive := func(g placement.GateAnswer) { answers <- g }
	a.Set(append(hanging, question(srv.URL, "first", time.Time{}), question(srv.URL, "asked a moment ago", time.Now())), receive)
	if got := <-answers; got.Gate != "first" || got.Verdict != placement.GateGood {
		t.Errorf("got %+v", got)
	}
	a.Set([]placement.GateQuestion{question(srv.URL, "first", time.Time{}), question(srv.URL, "second", time.Time{})}, receive)
	if got := <-answers; got.Gate != "second" {
		t.Errorf("got %+v", got)
	}
	cancel()
	if err := <-done; err != nil || asked.Load() != 2 {
		t.Errorf("%v, it was asked %d times, want 2", err, asked.Load())
	}
}

// What an answer says fits on one line, and can be recorded.
func TestTextsAreBounded(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		raw, _ := json.Marshal(map[string]string{"status": "error", "error": "a\nb\x1b[31m" + strings.Repeat("x", 10_000)})
		_, _ = w.Write(raw)
	}))
	defer srv.Close()
	got := asks(t, Server{URL: srv.URL}, promSpec(srv.URL, "< 1"))
	if len(got.Text) > longestText+len("…") || strings.ContainsAny(got.Text, "\n\x1b") {
		t.Errorf("%d bytes: %q", len(got.Text), got.Text)
	}
}
