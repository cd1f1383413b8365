package main

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/offline"
	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/server"
)

// The daemon explains its plan exactly as a checkout does.
func TestTheDaemonExplainsAsTheCheckoutDoes(t *testing.T) {
	checkout(t)
	for _, example := range []string{"examples/placing-spread", "examples/placing-properties", "examples/placing-selection"} {
		options := given(example)
		s, err := offline.ReadDir(example, hub.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var in offline.Input
		if len(options) > 0 {
			in.Clusters = options[1]
		}
		o, err := in.Forecast(s)
		if err != nil {
			t.Fatal(err)
		}
		daemon := server.New(nil)
		daemon.Publish(o.Report)
		listening := httptest.NewServer(daemon.Handler())
		defer listening.Close()
		for _, p := range o.Describe().Placements {
			for _, output := range []string{"text", "json"} {
				for _, cluster := range [][]string{nil, {p.Decisions[0].Cluster}} {
					ask := append([]string{"explain", p.Key(), "-o", output}, cluster...)
					var there, here bytes.Buffer
					transcribe(&there, append(ask, "--server", listening.URL)...)
					transcribe(&here, append(append(ask, "--path", example), options...)...)
					if timeless(there) != timeless(here) || there.Len() == 0 {
						t.Errorf("%v\nthe daemon says\n%s\nthe checkout says\n%s", ask, &there, &here)
					}
				}
			}
		}
	}
}

// timeless returns the output without the time of the decision.
func timeless(b bytes.Buffer) string {
	return regexp.MustCompile(`"lastTransitionTime": .*`).ReplaceAllString(b.String(), "")
}

func TestTheDaemonSaysWhatItCannotExplain(t *testing.T) {
	daemon := server.New(nil)
	listening := httptest.NewServer(daemon.Handler())
	defer listening.Close()
	fails := func(want string, args ...string) {
		t.Helper()
		var got bytes.Buffer
		transcribe(&got, append(append([]string{"explain"}, args...), "--server", listening.URL)...)
		code := exit.Failed
		if strings.HasPrefix(want, "there is no ") {
			code = exit.Attention
		}
		if !strings.Contains(got.String(), want) || !strings.HasSuffix(got.String(), fmt.Sprintf("exit code %d\n", code)) {
			t.Errorf("got %s\nwant %s", &got, want)
		}
	}
	fails("no report yet: the daemon is starting", "crp/queue")

	checkout(t)
	s, err := offline.ReadDir("examples/placing-spread", hub.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o, err := offline.Input{}.Forecast(s)
	if err != nil {
		t.Fatal(err)
	}
	daemon.Publish(o.Report)
	fails("there is no placement crp/quue; did you mean crp/queue?", "crp/quue")
	fails("there is no cluster moon; there are ap-1, eu-1, eu-2, us-1, us-2", "crp/queue", "moon")
	listening.Close()
	fails("no daemon answers at http://", "crp/queue")
}
