package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/golden"
)

// A tutorial is a page of the documentation with JSON that a command prints on real clusters.
// The names in its example are replaced by those of the test.
type tutorial struct {
	t          *testing.T
	path, text string
	name       string // of the namespace, instead of web-2
	blocks     int
}

func openTutorial(t *testing.T, path, name string) *tutorial {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return &tutorial{t: t, path: path, text: string(text), name: name}
}

// file returns a file of the example, with the names of the test.
func (d *tutorial) file(name string) string {
	d.t.Helper()
	text, err := os.ReadFile("../../examples/taking-over/" + name)
	if err != nil {
		d.t.Fatal(err)
	}
	return regexp.MustCompile(`web-2\b([^-]|$)`).ReplaceAllString(string(text), d.name+"$1")
}

var moment = regexp.MustCompile(`"20\d\d-[^"]*Z"`)

// shows compares the next JSON block of the page with the output.
func (d *tutorial) shows(v any) {
	d.t.Helper()
	var buf bytes.Buffer
	out := json.NewEncoder(&buf)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	if err := out.Encode(v); err != nil {
		d.t.Fatal(err)
	}
	got := moment.ReplaceAllString(strings.ReplaceAll(buf.String(), d.name, "web-2"), `"2026-11-20T12:00:00Z"`)
	parts := strings.SplitAfter(d.text, "```json\n")
	d.blocks++
	if len(parts) <= d.blocks {
		d.t.Fatalf("%s has only %d blocks of JSON", d.path, len(parts)-1)
	}
	block, rest, _ := strings.Cut(parts[d.blocks], "```")
	if got == block {
		return
	}
	parts[d.blocks] = got + "```" + rest
	d.text = strings.Join(parts, "")
	golden.File(d.t, d.path, d.text)
}

// A clusterDiff is a cluster's status as the jq filter of the tutorial prints it.
type clusterDiff struct {
	ClusterName      string                        `json:"clusterName"`
	FailedPlacements []api.FailedResourcePlacement `json:"failedPlacements"`
	DiffedPlacements []api.DiffedResourcePlacement `json:"diffedPlacements,omitempty"`
}

// refused runs the tutorial's command and jq filter.
func (d *daemon) refused() []clusterDiff {
	d.t.Helper()
	var p api.ClusterResourcePlacement
	text := d.gitfleet("get", "crp", "web-2-crp", "-o", "json", "--server", "http://"+d.address)
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		d.t.Fatalf("%v:\n%s", err, text)
	}
	var out []clusterDiff
	for _, c := range p.Status.PlacementStatuses {
		if c.FailedPlacements != nil {
			out = append(out, clusterDiff{c.ClusterName, c.FailedPlacements, c.DiffedPlacements})
		}
	}
	return out
}

// The steps of the takeover tutorial: with Never the status lists what would be taken over;
// IfNoDiff takes over equal objects and shows how the others differ; Always takes over all.
// Nothing changes before a commit says so.
func TestTakingOverPageWorks(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	doc := openTutorial(t, "../../docs/taking-over.md", d.name)
	ctx := context.Background()
	member := d.clients["member-2"]
	if _, err := member.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.name, Labels: map[string]string{"app": d.name}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"greeting": "Hello", "more": "x"}}
	if _, err := member.CoreV1().ConfigMaps(d.name).Create(ctx, theirs, metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil {
		t.Fatal(err)
	}
	placement := func(whenToTakeOver string) map[string]string {
		return map[string]string{"placement.yaml": strings.Replace(doc.file("placement.yaml"), "whenToTakeOver: Never", "whenToTakeOver: "+whenToTakeOver, 1)}
	}
	d.repo.Commit(t, "main", map[string]string{"app.yaml": doc.file("app.yaml")})
	step := d.repo.Commit(t, "main", placement("Never"))
	d.start()
	judged := func(objects int) {
		t.Helper()
		d.until(fmt.Sprintf("%d objects fail at %s", objects, step), func(r *status.Report) bool {
			if r.Source.InForce.Hash != step || len(r.Placements) != 1 {
				return false
			}
			failed, clusters := 0, r.Placements[0].Status.PlacementStatuses
			for _, c := range clusters {
				failed += len(c.FailedPlacements)
			}
			return len(clusters) == 3 && failed == objects
		})
	}
	greets := func(want string) {
		t.Helper()
		cm, err := member.CoreV1().ConfigMaps(d.name).Get(ctx, "settings", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%s %s %t", cm.Data["greeting"], cm.Data["more"], cm.Labels[api.ManagedByLabel] == d.name); got != want {
			t.Errorf("on the member: %s, want %s", got, want)
		}
	}

	judged(2)
	greets("Hello x false")
	doc.shows(d.refused())
	d.eventually("applied where nothing was", func() bool {
		return d.configMap("member-1", "settings")["greeting"] == "Welcome" && d.configMap("member-3", "settings")["greeting"] == "Welcome"
	})

	step = d.repo.Commit(t, "main", placement("IfNoDiff"))
	judged(1)
	greets("Hello x false")
	doc.shows(d.refused())
	if ns, err := member.CoreV1().Namespaces().Get(ctx, d.name, metav1.GetOptions{}); err != nil || ns.Labels[api.ManagedByLabel] != d.name {
		t.Errorf("the namespace, which is equal, was not taken over: %v", err)
	}

	step = d.repo.Commit(t, "main", placement("Always"))
	d.applied(step)
	greets("Welcome x true")
}
