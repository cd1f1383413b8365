package controllers

import "testing"

// A program that adds by contract is recognised by its field manager, or by the name of what it adds in a
// field.
func TestAddedByContract(t *testing.T) {
	for _, test := range []struct {
		manager, field, name string
		want                 bool
	}{
		{manager: "rancher", want: true}, {manager: "cert-manager-certificates-issuing", want: true}, {manager: "kubectl-edit"}, {manager: "rancher-desktop"},
		{field: "containers", name: "istio-proxy", want: true}, {field: "volumes", name: "istio-data", want: true}, {field: "containers", name: "istio-data"},
		{field: "env", name: "STAKATER_WEB_CONFIGMAP", want: true}, {field: "env", name: "ISTIO"}, {field: "containers"},
		{field: "imagePullSecrets", name: "builder-dockercfg-x1", want: true}, {field: "imagePullSecrets", name: "builder-dockercfg"},
	} {
		got := test.manager != "" && AddsByContract(test.manager) || test.field != "" && AddedByContract(test.field, test.name)
		if got != test.want {
			t.Errorf("%+v: %t", test, got)
		}
	}
}
