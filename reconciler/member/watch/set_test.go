package watch

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/availability"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/series"
)

// setOf returns a set of watches of a server.
func setOf(t *testing.T, credentials *rest.Config) *Set {
	t.Helper()
	return setWith(t, nil, credentials)
}

func setWith(t *testing.T, connect func(context.Context) (*rest.Config, error), credentials *rest.Config) *Set {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	c, err := connection.New(connection.Config{
		Cluster: "east", Connect: connect, Timeout: 30 * time.Second, Metrics: new(connection.NewMetrics()), Log: log,
	}, credentials)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return New(c, Config{
		Interrupted: func() {},
		Cluster:     "east", Log: log, Expressions: availability.New(&availability.Cache{}),
		Restarts: series.NewCounter("restarts", ""),
	})
}

var configMapKind = connection.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespaced: true}

func configMap(name string) api.ID { return api.ID{Kind: "ConfigMap", Namespace: "app", Name: name} }

// CustomResourceDefinitions are listed a few at a time: a page of them is in memory as a whole, on each of the clusters that list them.
func TestDefinitionsAreListedInShortPages(t *testing.T) {
	definition := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	for name, test := range map[string]struct {
		kind *Kind
		want int64
	}{
		"definitions":                     {&Kind{GVK: definition, Full: true}, 10},
		"the metadata of definitions":     {&Kind{GVK: definition}, 500},
		"other kinds with their contents": {&Kind{GVK: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Full: true}, 500},
	} {
		if got := test.kind.pageSize(); got != test.want {
			t.Errorf("%s: pages of %d objects, want %d", name, got, test.want)
		}
	}
}
