package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/replica"
	"github.com/gitfleet/gitfleet/test/simulated"
	"github.com/gitfleet/gitfleet/test/tempfile"
)

// The kustomization for more than one replica starts two, each with a state directory of
// its own, that stand for the same Lease and may write it.
func TestDeployedReplicas(t *testing.T) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(deployed, "high-availability"))
	if err != nil {
		t.Fatal(err)
	}
	var d appsv1.Deployment
	var role rbacv1.Role
	for _, r := range built.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case r.GetKind() == "Deployment":
			err = yaml.UnmarshalStrict(text, &d)
		case r.GetKind() == "Role" && r.GetName() == "gitfleet-leader":
			err = yaml.UnmarshalStrict(text, &role)
		case r.GetKind() == "PersistentVolumeClaim":
			t.Error("the replicas share a volume")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	pod := d.Spec.Template.Spec
	if d.Spec.Replicas == nil || *d.Spec.Replicas != 2 || d.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType {
		t.Errorf("the Deployment is %+v", d.Spec)
	}
	for _, v := range pod.Volumes {
		if v.Name == "state" && (v.EmptyDir == nil || v.PersistentVolumeClaim != nil) {
			t.Errorf("the state directory is %+v", v)
		}
	}
	flags := newRun().Flags()
	if err := flags.Parse(pod.Containers[0].Args[3:]); err != nil {
		t.Fatal(err)
	}
	cfg, err := settings.Load(filepath.Join(deployed, "kubernetes/gitfleet.yaml"), flags)
	if err != nil {
		t.Fatal(err)
	}
	lease := cfg.Availability.Lease
	if lease.Namespace != role.Namespace || !slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Resources, "leases") && slices.Contains(r.ResourceNames, lease.Name) && slices.Contains(r.Verbs, "update")
	}) {
		t.Errorf("the lease is %+v, and the role says %+v", lease, role.Rules)
	}
}

// Half a lease is an error that says what is missing.
func TestLeaseIsValidated(t *testing.T) {
	for text, want := range map[string]string{
		"lease: {name: gitfleet}":                      "highAvailability.lease.namespace: is missing",
		"lease: {namespace: gitfleet}":                 "highAvailability.lease.name: is missing",
		"kubeconfig: management":                       "highAvailability.lease.name: is missing",
		"lease: {name: A_B, namespace: gitfleet}":      "highAvailability.lease.name: a lowercase RFC 1123 label",
		"lease: {name: gitfleet, namespace: gitfleet}": "",
	} {
		path := tempfile.Write(t, "gitfleet.yaml", "source: {url: https://git.example.com/fleet}\nmembers: {kubeconfigDir: members}\nhighAvailability: {"+text+"}\n")
		_, err := settings.Load(path, newRun().Flags())
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// A backup is put beside the Lease, where the next leader finds it; what is there is not
// replaced unawares.
func TestStateIsImportedForReplicas(t *testing.T) {
	f := simulated.New(simulated.Options{})
	f.Cluster("management")
	dir := t.TempDir()
	if err := f.WriteKubeconfigs(dir); err != nil {
		t.Fatal(err)
	}
	store, err := ledger.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	l := ledger.New()
	l.SetPlacement(api.PlacementKey{Name: "web"}, ledger.Placement{Generation: 2})
	if err := store.Save(l); err != nil {
		t.Fatal(err)
	}
	backup, err := os.Create(filepath.Join(t.TempDir(), "state.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer backup.Close()
	if err := store.Export(backup); err != nil {
		t.Fatal(err)
	}
	config := tempfile.Write(t, "gitfleet.yaml", "highAvailability: {lease: {name: gitfleet, namespace: default}, kubeconfig: "+filepath.Join(dir, "management.kubeconfig")+"}\n")
	for _, step := range []struct {
		args []string
		want exit.Code
		says string
	}{
		{nil, exit.OK, "the management cluster has the state of the backup"},
		{nil, exit.Failed, "is not empty: it has 1 records; with --force they are replaced"},
		{[]string{"--force"}, exit.OK, "the management cluster has the state of the backup"},
		{[]string{"--state-dir", dir}, exit.Failed, "or with --config which replicas"},
	} {
		var out bytes.Buffer
		args := append([]string{"state", "import", backup.Name(), "--config", config}, step.args...)
		if code := run(args, &out, &out); code != step.want || !strings.Contains(out.String(), step.says) {
			t.Errorf("%v: exit code %d: %s; want %d and %q", step.args, code, out.String(), step.want, step.says)
		}
	}
	cfg, err := settings.Read(config, pflag.NewFlagSet("", pflag.ContinueOnError))
	if err != nil {
		t.Fatal(err)
	}
	candidate, err := newCandidate(cfg, newMetrics(&recorder{}).leader, nil)
	if err != nil {
		t.Fatal(err)
	}
	if l, _, err := candidate.Newer(""); err != nil || l.Placement(api.PlacementKey{Name: "web"}) == nil {
		t.Errorf("the replicas find %v, %v", l, err)
	}
	if err := candidate.objection(); err == nil || !strings.Contains(err.Error(), "none leads yet") {
		t.Errorf("a replica that does not lead takes orders: %v", err)
	}
	if err := candidate.mayWrite(); err == nil {
		t.Error("a replica that does not lead may write")
	}
	branches := fencedBranches{nil, candidate.mayWrite}
	if _, err := branches.Publish(t.Context(), gitsource.BranchCommit{}); !errors.Is(err, replica.ErrFenced) {
		t.Errorf("a replica that does not lead pushes: %v", err)
	}
	if err := branches.Remove(t.Context(), "branch", ""); !errors.Is(err, replica.ErrFenced) {
		t.Errorf("a replica that does not lead removes a branch: %v", err)
	}
}
