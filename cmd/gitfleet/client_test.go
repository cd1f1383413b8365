package main

import (
	"crypto/tls"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/overview"
	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/test/reports"
	"github.com/gitfleet/gitfleet/test/tempfile"
)

// guarded returns the address of a daemon with TLS that requires a token, and the file with its
// certificate.
func guarded(t *testing.T, token string) (address, ca string) {
	t.Helper()
	daemon := server.New(nil)
	daemon.Publish(reports.Sample())
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Authorization") != "Bearer "+token {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		daemon.Handler().ServeHTTP(w, req)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, tempfile.Write(t, "ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})))
}

// A client with the certificate and the token gets a response. Otherwise the error says what is
// missing, and never contains the token.
func TestAGuardedDaemon(t *testing.T) {
	address, ca := guarded(t, "s3cret")
	right, wrong := tempfile.Write(t, "token", "s3cret\n"), tempfile.Write(t, "token", "wr0ng\n")
	plain, _ := strings.CutPrefix(address, "https://")
	tests := map[string]struct {
		args []string
		want string // empty if there is a response
	}{
		"all is right":      {[]string{"--server", address, "--ca-file", ca, "--token-file", right}, ""},
		"unknown authority": {[]string{"--server", address, "--token-file", right}, "certificate signed by unknown authority"},
		"no token":          {[]string{"--server", address, "--ca-file", ca}, "Authenticate with --token-file or $GITFLEET_TOKEN_FILE"},
		"wrong token":       {[]string{"--server", address, "--ca-file", ca, "--token-file", wrong}, "the daemon answers 401 Unauthorized: who are you?"},
		"no such token":     {[]string{"--server", address, "--ca-file", ca, "--token-file", "nowhere"}, "nowhere"},
		"no such authority": {[]string{"--server", address, "--ca-file", "nowhere"}, "nowhere"},
		"half a pair":       {[]string{"--server", address, "--client-cert", ca}, "--client-cert and --client-key need each other"},
		"in the clear":      {[]string{"--server", "http://" + plain, "--token-file", right}, "a token or certificates require https://"},
		"no scheme":         {[]string{"--server", plain}, "must be http://HOST:PORT"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, command := range [][]string{{"get", "crp"}, {"explain", "crp/nothing"}} {
				said := say(append(command, test.args...)...)
				if test.want != "" && !strings.Contains(said, test.want) || test.want == "" && !strings.Contains(said, "web") && !strings.Contains(said, "no placement") {
					t.Errorf("%s says %s\nwant %s", command[0], said, test.want)
				}
				if strings.Contains(said, "s3cret") || strings.Contains(said, "wr0ng") {
					t.Errorf("it tells the token: %s", said)
				}
			}
		})
	}
}

// say returns the whole output of a command.
func say(args ...string) string {
	var out strings.Builder
	run(args, &out, &out)
	return out.String()
}

// A daemon may require client certificates.
func TestAClientShowsItsCertificate(t *testing.T) {
	daemon := server.New(nil)
	daemon.Publish(reports.Sample())
	srv := httptest.NewUnstartedServer(daemon.Handler())
	srv.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	ca := tempfile.Write(t, "ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})))
	if said := say("get", "crp", "--server", srv.URL, "--ca-file", ca); !strings.Contains(said, "certificate required") && !strings.Contains(said, "no daemon answers") {
		t.Errorf("without a certificate: %s", said)
	}
	cert, key := tempfile.Certificate(t)
	if said := say("get", "crp", "--server", srv.URL, "--ca-file", ca, "--client-cert", cert, "--client-key", key); !strings.Contains(said, "web") {
		t.Errorf("with a certificate: %s", said)
	}
}

// A token is sent only to the daemon that was named, and not to where it redirects.
func TestATokenGoesNowhereElse(t *testing.T) {
	asked := false
	other := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(other.Close)
	srv := httptest.NewTLSServer(http.RedirectHandler(other.URL, http.StatusFound))
	t.Cleanup(srv.Close)
	ca := tempfile.Write(t, "ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})))
	said := say("get", "crp", "--server", srv.URL, "--ca-file", ca, "--token-file", tempfile.Write(t, "token", "s3cret"))
	if asked || !strings.Contains(said, "the daemon answers 302 Found") {
		t.Errorf("asked elsewhere: %t; it says %s", asked, said)
	}
}

// If nothing has happened since the report was made, ages are computed from the time of the
// response.
func TestAgesAreThoseOfTheAnswer(t *testing.T) {
	daemon := server.New(nil)
	overview.Serve(daemon, nil, nil)
	daemon.Publish(reports.Settled(t).Report)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		daemon.Handler().ServeHTTP(&aged{w}, req)
	}))
	t.Cleanup(srv.Close)
	for command, want := range map[string]string{"get crp": "4h", "status": "in force for 4h", "events": "4h", "describe crp web": "4h"} {
		if said := say(append(strings.Fields(command), "--server", srv.URL)...); !strings.Contains(said, want) {
			t.Errorf("%s says %s", command, said)
		}
	}
}

// Polls without a new commit and requests to the forge cause no report, but are still shown.
func TestStatusTellsTheLastPoll(t *testing.T) {
	report := reports.Settled(t).Report
	daemon := server.New(nil)
	overview.Serve(daemon, func() (gitsource.Status, []gitsource.Step) {
		at := report.At.Add(2 * time.Hour)
		steps := []gitsource.Step{{What: "unpacking", Since: at.Add(-time.Minute)}, {What: "listing", Since: at.Add(-time.Second)}}
		return gitsource.Status{LastPoll: at.Add(-3 * time.Second), LastSuccess: at.Add(-time.Minute)}, steps
	}, func() []string { return []string{"pull requests are not planned since 09:00: the forge answered 401"} })
	daemon.Publish(report)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		daemon.Handler().ServeHTTP(&aged{w}, req)
	}))
	t.Cleanup(srv.Close)
	if said := say("status", "--server", srv.URL); !strings.Contains(said, "polled 3s ago") || !strings.Contains(said, "\n  now: unpacking, for 60s\n") || strings.Contains(said, "listing") || !strings.Contains(said, "\n  forge: pull requests are not planned since 09:00: the forge answered 401\n") {
		t.Errorf("it says %s", said)
	}
}

// An aged response is two hours old.
type aged struct{ http.ResponseWriter }

func (a *aged) WriteHeader(code int) {
	a.Header().Set("Age", "7200")
	a.ResponseWriter.WriteHeader(code)
}
