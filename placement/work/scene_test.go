package work

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/test/golden"
)

// TestScenes renders the placements in testdata for their clusters. A scene has objects.yaml,
// overrides.yaml, clusters (NAME key=value …) and want, and optionally placement, which is the
// key to use instead of crp/crp-1.
func TestScenes(t *testing.T) {
	golden.Archives(t, "testdata/*.txtar", func(t *testing.T, archive *txtar.Archive) {
		golden.Answer(t, archive, "want", play(t, archive))
	})
}

// play renders a scene and formats the content of each cluster.
func play(t *testing.T, archive *txtar.Archive) string {
	t.Helper()
	cros, ros := overrides(t, golden.Text(archive, "overrides.yaml"))
	selected := objects(t, golden.Text(archive, "objects.yaml"))
	given := encoded(t, selected, cros, ros)
	defer func() {
		if encoded(t, selected, cros, ros) != given {
			t.Error("rendering changed what it was given")
		}
	}()
	r := NewRenderer(keyOf(golden.Text(archive, "placement")), selected, cros, ros, scopes)
	var out strings.Builder
	for _, w := range r.Warnings() {
		fmt.Fprintf(&out, "warning: %s\n", w)
	}
	for _, c := range clusters(golden.Text(archive, "clusters")) {
		rendered, err := r.For(c)
		again, errAgain := r.For(c)
		if again.Hash != rendered.Hash || fmt.Sprint(err) != fmt.Sprint(errAgain) {
			t.Errorf("%s: asked twice, For answers %s, %v and %s, %v", c.Name, rendered.Hash, err, again.Hash, errAgain)
		}
		describe(&out, c, *rendered, err)
	}
	return out.String()
}

// A fataler is a test, a benchmark, or a property test.
type fataler interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func encoded(t fataler, values ...any) string {
	t.Helper()
	data, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func describe(out *strings.Builder, c placement.Cluster, r Rendered, err error) {
	fmt.Fprintf(out, "%s\n", c.Name)
	for _, o := range r.ClusterOverrides {
		fmt.Fprintf(out, "  applies ClusterResourceOverride %s\n", o)
	}
	for _, o := range r.Overrides {
		fmt.Fprintf(out, "  applies ResourceOverride %s/%s\n", o.Namespace, o.Name)
	}
	if _, ok := errors.AsType[*OverrideError](err); ok {
		fmt.Fprintf(out, "  Overridden=False: %s\n", err)
		return
	}
	if _, ok := errors.AsType[*EnvelopeError](err); ok {
		fmt.Fprintf(out, "  WorkSynchronized=False: %s\n", strings.ReplaceAll(err.Error(), "; ", "\n    "))
		return
	}
	for _, m := range r.Manifests {
		data, _ := m.Object.Content.MarshalJSON()
		fmt.Fprintf(out, "  %s%s", data[:len(data)-1], from(m))
	}
	for _, m := range r.Refused {
		fmt.Fprintf(out, "  refused %s: %s%s", m.ID, m.Reason, from(m.Manifest))
	}
}

func from(m *Manifest) string {
	if m.Envelope == nil {
		return "\n"
	}
	return fmt.Sprintf(" from %s %s\n", m.Envelope.Type, objectName(m.Envelope.Namespace, m.Envelope.Name))
}

// scopes knows the scopes of some kinds, as the hub does.
func scopes(gk api.GroupKind) (namespaced, known bool) {
	switch gk.Kind {
	case "ResourceQuota", "Deployment", "ConfigMap", "Secret":
		return true, true
	case "Namespace", "ClusterRole", "MutatingWebhookConfiguration":
		return false, true
	}
	return false, false
}

func keyOf(text string) api.PlacementKey {
	parts := strings.Split(strings.TrimSpace(text), "/")
	switch len(parts) {
	case 3:
		return api.PlacementKey{Namespace: parts[1], Name: parts[2]}
	case 2:
		return api.PlacementKey{Name: parts[1]}
	default:
		return api.PlacementKey{Name: "crp-1"}
	}
}

// objects decodes YAML documents as the hub does.
func objects(t fataler, text string) []*api.Object {
	t.Helper()
	var all []*api.Object
	for i, doc := range documents(text) {
		var fields map[string]any
		if err := yaml.UnmarshalStrict([]byte(doc), &fields); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		u, err := objectOf(fields)
		if err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		hash, err := hashObject(u, nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &api.Object{ID: api.IDOf(u), Content: u, Hash: hash, Origin: api.Origin{Path: "objects.yaml", Document: i + 1}})
	}
	return all
}

func overrides(t fataler, text string) (cros []*api.ClusterResourceOverride, ros []*api.ResourceOverride) {
	t.Helper()
	for _, doc := range documents(text) {
		if strings.Contains(doc, "kind: ClusterResourceOverride") {
			o := &api.ClusterResourceOverride{}
			if err := yaml.UnmarshalStrict([]byte(doc), o); err != nil {
				t.Fatalf("%v in\n%s", err, doc)
			}
			cros = append(cros, o)
			continue
		}
		o := &api.ResourceOverride{}
		if err := yaml.UnmarshalStrict([]byte(doc), o); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		ros = append(ros, o)
	}
	return cros, ros
}

func clusters(text string) []placement.Cluster {
	var all []placement.Cluster
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		c := placement.Cluster{Name: words[0], Labels: map[string]string{}}
		for _, w := range words[1:] {
			k, v, _ := strings.Cut(w, "=")
			c.Labels[k] = v
		}
		all = append(all, c)
	}
	return all
}
