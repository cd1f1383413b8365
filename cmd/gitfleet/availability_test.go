package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/daemon"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/test/tempfile"
)

// The kustomization for several replicas starts two, each with a separate state directory. Both
// use the same Lease, and may write it.
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
	flags := daemon.NewRun().Flags()
	if err := flags.Parse(pod.Containers[0].Args[3:]); err != nil {
		t.Fatal(err)
	}
	cfg, err := settings.Load(filepath.Join(deployed, "kubernetes/gitfleet.yaml"), flags)
	if err != nil {
		t.Fatal(err)
	}
	lease := cfg.HighAvailability.Lease
	if lease.Namespace != role.Namespace || !slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Resources, "leases") && slices.Contains(r.ResourceNames, lease.Name) && slices.Contains(r.Verbs, "update")
	}) {
		t.Errorf("the lease is %+v, and the role says %+v", lease, role.Rules)
	}
}

// Incomplete settings of a lease are an error that says what is missing.
func TestLeaseIsValidated(t *testing.T) {
	for text, want := range map[string]string{
		"lease: {name: gitfleet}":                      "highAvailability.lease.namespace: is missing",
		"lease: {namespace: gitfleet}":                 "highAvailability.lease.name: is missing",
		"kubeconfig: management":                       "highAvailability.lease.name: is missing",
		"lease: {name: A_B, namespace: gitfleet}":      "highAvailability.lease.name: a lowercase RFC 1123 label",
		"lease: {name: gitfleet, namespace: gitfleet}": "",
	} {
		path := tempfile.Write(t, "gitfleet.yaml", "source: {url: https://git.example.com/fleet}\nmembers: {kubeconfigDir: members}\nhighAvailability: {"+text+"}\n")
		_, err := settings.Load(path, daemon.NewRun().Flags())
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
