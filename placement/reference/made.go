package reference

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Anywhere is the namespace of what is made in namespaces that are not known.
const Anywhere = "*"

// A maker is a kind from whose objects a controller makes others.
type maker struct {
	kind string // of what is made
	// names are the fields that may have its name, the first that is set counts; without any the name is that of the object.
	names [][]string
	// list is a list whose items each have a name.
	list []string
	// everywhere says that it is made in namespaces that the object does not name.
	everywhere bool
}

// makers are known controllers that make Secrets and ConfigMaps.
var makers = map[api.GroupKind]maker{
	{Group: "external-secrets.io", Kind: "ExternalSecret"}:             {kind: "Secret", names: [][]string{{"spec", "target", "name"}}},
	{Group: "external-secrets.io", Kind: "ClusterExternalSecret"}:      {kind: "Secret", names: [][]string{{"spec", "externalSecretSpec", "target", "name"}, {"spec", "externalSecretName"}}, everywhere: true},
	{Group: "cert-manager.io", Kind: "Certificate"}:                    {kind: "Secret", names: [][]string{{"spec", "secretName"}}},
	{Group: "trust.cert-manager.io", Kind: "Bundle"}:                   {kind: "ConfigMap", everywhere: true},
	{Group: "bitnami.com", Kind: "SealedSecret"}:                       {kind: "Secret", names: [][]string{{"spec", "template", "metadata", "name"}}},
	{Group: "isindir.github.com", Kind: "SopsSecret"}:                  {kind: "Secret", list: []string{"spec", "secretTemplates"}},
	{Group: "secrets-store.csi.x-k8s.io", Kind: "SecretProviderClass"}: {kind: "Secret", names: [][]string{{"secretName"}}, list: []string{"spec", "secretObjects"}},
	{Group: "secrets.hashicorp.com", Kind: "VaultStaticSecret"}:        {kind: "Secret", names: [][]string{{"spec", "destination", "name"}}},
	{Group: "secrets.hashicorp.com", Kind: "VaultDynamicSecret"}:       {kind: "Secret", names: [][]string{{"spec", "destination", "name"}}},
	{Group: "secrets.hashicorp.com", Kind: "VaultPKISecret"}:           {kind: "Secret", names: [][]string{{"spec", "destination", "name"}}},
	{Group: "onepassword.com", Kind: "OnePasswordItem"}:                {kind: "Secret"},
	{Group: "secrets.infisical.com", Kind: "InfisicalSecret"}:          {kind: "Secret", names: [][]string{{"spec", "managedSecretReference", "secretName"}}},
	{Group: "secrets.doppler.com", Kind: "DopplerSecret"}:              {kind: "Secret", names: [][]string{{"spec", "managedSecret", "name"}}},
	{Group: "spv.no", Kind: "AzureKeyVaultSecret"}:                     {kind: "Secret", names: [][]string{{"spec", "output", "secret", "name"}}},
	{Group: "secretgenerator.mittwald.de", Kind: "StringSecret"}:       {kind: "Secret"},
	{Group: "secretgen.carvel.dev", Kind: "Password"}:                  {kind: "Secret"},
	{Group: "secretgen.k14s.io", Kind: "Password"}:                     {kind: "Secret"},
	{Group: "ricoberger.de", Kind: "VaultSecret"}:                      {kind: "Secret"},
}

// copied begin the annotations with which controllers copy an object to other namespaces.
var copied = []string{"reflector.v1.k8s.emberstack.com/", "replicator.v1.mittwald.de/replicat"}

// everywhere are the objects that every namespace has.
var everywhere = map[api.ID]bool{
	{Kind: "ConfigMap", Namespace: Anywhere, Name: "kube-root-ca.crt"}:         true,
	{Kind: "ConfigMap", Namespace: Anywhere, Name: "openshift-service-ca.crt"}: true,
	{Kind: "ServiceAccount", Namespace: Anywhere, Name: "default"}:             true,
}

// Made returns the object itself and what controllers make from it.
func Made(o *unstructured.Unstructured) []api.ID {
	id := api.IDOf(o)
	out := []api.ID{id}
	add := func(kind, namespace, name string) {
		if name != "" {
			out = append(out, api.ID{Kind: kind, Namespace: namespace, Name: name})
		}
	}
	kind := id.GroupKind()
	if m, known := makers[kind]; known {
		namespace := id.Namespace
		if m.everywhere {
			namespace = Anywhere
		}
		if m.list == nil {
			add(m.kind, namespace, nameIn(o.Object, m.names, id.Name))
		}
		for _, item := range items(o.Object, m.list...) {
			name, _ := item["name"].(string)
			add(m.kind, namespace, nameIn(item, m.names, name))
		}
	}
	switch {
	case kind == definitions:
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		defined, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
		out = append(out, definitionOf(api.GroupKind{Group: group, Kind: defined}))
	case kind == api.GroupKind{Group: "networking.k8s.io", Kind: "Ingress"} && issued(o):
		for _, tls := range items(o.Object, "spec", "tls") {
			name, _ := tls["secretName"].(string)
			add("Secret", id.Namespace, name)
		}
	case kind == api.GroupKind{Kind: "Service"}:
		add("Secret", id.Namespace, o.GetAnnotations()["service.beta.openshift.io/serving-cert-secret-name"])
	}
	for key := range o.GetAnnotations() {
		for _, prefix := range copied {
			if strings.HasPrefix(key, prefix) {
				out = append(out, api.ID{Group: id.Group, Kind: id.Kind, Namespace: Anywhere, Name: id.Name})
			}
		}
	}
	return out
}

func nameIn(o map[string]any, fields [][]string, otherwise string) string {
	for _, field := range fields {
		if name, _, _ := unstructured.NestedString(o, field...); name != "" {
			return name
		}
	}
	return otherwise
}
