package e2e

import (
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/reconciler/tracing"
	"github.com/gitfleet/gitfleet/test/otlp"
)

// A commit is one trace, from its detection to each cluster, and the log names it.
func TestEachCommitHasATrace(t *testing.T) {
	t.Parallel()
	receiver := otlp.NewReceiver(t)
	d := newDaemon(t, "--set", "tracing.endpoint="+receiver.URL, "--set", "logFormat=json")
	d.repo.Commit(t, "main", map[string]string{"placement.yaml": yamlPlacement("all", d.name, pickAll)})
	good := d.repo.Commit(t, "main", d.app("good"))
	d.startAt(good)
	d.waitForValues("good good good")
	d.waitForProven(good)
	refused := d.repo.Commit(t, "main", map[string]string{"wrong.yaml": "kind: [\n"})
	d.until("the commit is refused", func(r *status.Report) bool { return r.Source.Newest.Hash == refused && len(r.Source.Problems) > 0 })
	d.stop() // flushes the remaining spans

	id, spans := tracing.TraceID(good), map[string][]string{}
	got, _ := receiver.Received()
	for _, s := range got {
		trace := hex.EncodeToString(s.TraceId)
		if trace == tracing.TraceID(refused) {
			if s.Status.GetCode() != tracepb.Status_STATUS_CODE_ERROR {
				t.Errorf("span %s of the refused commit has status %v", s.Name, s.Status)
			}
			spans["refused"] = append(spans["refused"], s.Name)
			continue
		}
		if trace != id {
			t.Errorf("span %s is in trace %s", s.Name, trace)
		}
		cluster := ""
		for _, a := range s.Attributes {
			if a.Key == "gitfleet.cluster" {
				cluster = a.Value.GetStringValue()
			}
		}
		spans[s.Name] = append(spans[s.Name], cluster)
	}
	for _, clusters := range spans {
		slices.Sort(clusters)
	}
	want := map[string][]string{
		"commit": {""}, "load": {""}, "plan": {""}, "apply": d.members, "available": d.members, "refused": {"commit", "load"},
	}
	if !maps.EqualFunc(spans, want, slices.Equal) {
		t.Errorf("the spans are %v, want %v", spans, want)
	}

	text, err := os.ReadFile(d.log.Name())
	if err != nil {
		t.Fatal(err)
	}
	named := false
	for line := range strings.Lines(string(text)) {
		var record struct {
			Message string `json:"msg"`
			Commit  string
			TraceID string `json:"trace_id"`
		}
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Errorf("not JSON: %s", line)
		}
		named = named || record.Message == "commit in force" && record.Commit == good && record.TraceID == id
	}
	if !named {
		t.Errorf("no line names commit %s and trace %s:\n%s", good, id, text)
	}
}
