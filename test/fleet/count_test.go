package fleet_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/test/fleet"
)

func apply(t *testing.T, config *rest.Config, namespace string) {
	t.Helper()
	object := corev1.ConfigMap("settings", namespace).WithData(map[string]string{"colour": "blue"})
	_, err := client(t, config).CoreV1().ConfigMaps(namespace).Apply(t.Context(), object, metav1.ApplyOptions{FieldManager: "test"})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRecorderSeparatesObjectsFromOtherRequests(t *testing.T) {
	m := fleet.Shared(t).Member("member-1")
	ns := fleet.Namespace(t)
	createNamespace(t, m, ns)

	recorder := &fleet.Recorder{}
	config := recorder.Wrap(m.Config)
	apply(t, config, ns)
	watch, err := client(t, config).CoreV1().ConfigMaps(ns).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	if _, err := client(t, config).Discovery().ServerVersion(); err != nil {
		t.Fatal(err)
	}
	if _, err := client(t, config).Discovery().ServerResourcesForGroupVersion("apps/v1"); err != nil {
		t.Fatal(err)
	}

	if all := recorder.Requests(); len(all) != 4 {
		t.Errorf("recorded %v", all)
	}
	objects := recorder.Objects()
	if len(objects) != 1 {
		t.Fatalf("requests for objects are %v", objects)
	}
	path := "/api/v1/namespaces/" + ns + "/configmaps/settings"
	if q := objects[0]; q.Method != "PATCH" || q.Path != path || q.Query.Get("fieldManager") != "test" ||
		!strings.HasPrefix(q.ContentType, "application/apply-patch+") || q.Status != 201 {
		t.Errorf("recorded %s", q)
	}
	recorder.Reset()
	if rest := recorder.Requests(); len(rest) != 0 {
		t.Errorf("a reset recorder has %v", rest)
	}
}

func TestServerCountsAppliesByResource(t *testing.T) {
	m := fleet.Shared(t).Member("member-1")
	ns := fleet.Namespace(t)
	createNamespace(t, m, ns)
	before, err := m.Requests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	apply(t, m.Config, ns)
	apply(t, m.Config, ns)
	eventually(t, func() error {
		after, err := m.Requests(t.Context())
		if err != nil {
			return err
		}
		if since := after.Since(before); since.Of(fleet.Key{Verb: "APPLY", Resource: "configmaps"}) != 2 {
			return fmt.Errorf("want two applies of configmaps, got\n%s", since)
		}
		return nil
	})
}

func TestAuditLogHasTheUser(t *testing.T) {
	f := fleet.Shared(t)
	m := f.Member("member-1")
	ns := fleet.Namespace(t)
	createNamespace(t, m, ns)
	earlier, err := f.Audit("member-1", time.Time{})
	if err != nil || len(earlier) == 0 {
		t.Fatalf("%d events before: %v", len(earlier), err)
	}
	m.Config.UserAgent = "somebody/1.0"
	m.Config.Impersonate = rest.ImpersonationConfig{UserName: "else", Groups: []string{"system:masters"}}
	began := time.Now()
	apply(t, m.Config, ns)
	eventually(t, func() error {
		events, err := f.Audit("member-1", began)
		if err != nil {
			return err
		}
		events = slices.DeleteFunc(events, func(e fleet.Event) bool { return e.UserAgent != "somebody/1.0" })
		if len(events) != 1 {
			return fmt.Errorf("want one event, got %v", events)
		}
		e := events[0]
		if e.Verb != "patch" || e.Object.Resource != "configmaps" || e.Object.Namespace != ns || e.Object.Name != "settings" || e.Response.Code != 201 {
			return fmt.Errorf("the event is %+v", e)
		}
		if e.Impersonated.Username != "else" {
			return fmt.Errorf("it impersonates %q", e.Impersonated.Username)
		}
		if all, err := f.Audit("member-1", time.Time{}); err != nil || len(all) <= len(earlier) {
			return fmt.Errorf("%d events in all, %d before: %v", len(all), len(earlier), err)
		}
		return nil
	})
}
