package fleet_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/test/fleet"
)

func TestMain(m *testing.M) {
	if os.Getenv(orphanVariable) != "" {
		runUntilKilled()
	}
	fleet.Main(m, fleet.Options{Clusters: 3, Audit: true})
}

func client(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func createNamespace(t *testing.T, m fleet.Member, name string) {
	t.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client(t, m.Config).CoreV1().Namespaces().Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatalf("%s: %v", m.Name, err)
	}
}

// eventually fails the test if check does not become nil soon.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-ticker.C:
		}
	}
}

func TestMembersAreSeparateClusters(t *testing.T) {
	f := fleet.Shared(t)
	var names []string
	for _, m := range f.Members() {
		names = append(names, m.Name)
	}
	if got := fmt.Sprint(names); got != "[member-1 member-2 member-3]" {
		t.Errorf("members are %s", got)
	}

	ns := fleet.Namespace(t)
	createNamespace(t, f.Member("member-1"), ns)
	_, err := client(t, f.Member("member-2").Config).CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("what was created on member-1 is on member-2: %v", err)
	}

	stranger := f.Member("member-2").Config
	stranger.Host = f.Member("member-1").Config.Host
	if _, err := client(t, stranger).Discovery().ServerVersion(); err == nil {
		t.Error("member-1 is reached with what belongs to member-2")
	}
}

func TestServersReportTheirVersion(t *testing.T) {
	info, err := client(t, fleet.Shared(t).Member("member-1").Config).Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if info.Major != "1" || info.Minor == "" || info.GitVersion == "" {
		t.Errorf("version is %+v", info)
	}
}

func TestObjectsSurviveAnOutage(t *testing.T) {
	f := fleet.Shared(t)
	ns := fleet.Namespace(t)
	for _, m := range f.Members() {
		createNamespace(t, m, ns)
	}
	get := func(name string) error {
		_, err := client(t, f.Member(name).Config).CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
		return err
	}

	if err := f.Stop("member-2"); err != nil {
		t.Fatal(err)
	}
	if err := get("member-2"); err == nil || apierrors.IsNotFound(err) {
		t.Errorf("a stopped cluster answers: %v", err)
	}
	if err := get("member-1"); err != nil {
		t.Errorf("an outage of member-2 is one of member-1: %v", err)
	}
	if err := f.Start("member-2"); err != nil {
		t.Fatal(err)
	}
	if err := get("member-2"); err != nil {
		t.Errorf("not as before the outage: %v", err)
	}
}

func TestPausedClusterHangsUntilResumed(t *testing.T) {
	f := fleet.Shared(t)
	probe := func() error {
		config := f.Member("member-3").Config
		config.Timeout = time.Second
		_, err := client(t, config).Discovery().ServerVersion()
		return err
	}
	if err := f.Pause("member-3"); err != nil {
		t.Fatal(err)
	}
	err := probe()
	if err := f.Resume("member-3"); err != nil {
		t.Fatal(err)
	}
	if err == nil {
		t.Error("a paused cluster answers")
	}
	eventually(t, probe)
}

func TestOutageOfAnUnknownClusterIsAnError(t *testing.T) {
	if err := fleet.Shared(t).Stop("member-9"); err == nil {
		t.Error("stopped a cluster that does not exist")
	}
}

func TestNamespacesDiffer(t *testing.T) {
	if a, b := fleet.Namespace(t), fleet.Namespace(t); a == b || a[:len("testnamespacesdiffer-")] != "testnamespacesdiffer-" {
		t.Errorf("%s, %s", a, b)
	}
}
