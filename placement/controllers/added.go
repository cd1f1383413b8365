package controllers

import (
	"slices"
	"strings"
)

// An Adder is a program that adds items to objects of others by contract, such as the injector of a
// sidecar. It is recognised by its field manager, or by the names of what it adds.
type Adder struct {
	Owner string
	// Managers are the names of its field managers, and Items what it adds, whichever manager wrote
	// it. In a name "*" stands for any text.
	Managers []string
	Items    []Added
}

// Added are items of lists and keys of maps, by the name of the field that has them.
type Added struct {
	Fields, Names []string
}

// Adders are the programs that add items by contract. Controllers of Kubernetes itself need no entry.
var Adders = []Adder{
	{
		Owner: "Istio",
		Items: []Added{
			{containers, []string{"istio-proxy", "istio-init", "istio-validation"}},
			{volumeLists, []string{"istio-*", "istiod-ca-cert", "workload-socket", "workload-certs", "credential-socket"}},
			{labels, []string{"security.istio.io/*", "service.istio.io/*"}},
		},
	},
	{
		Owner: "Linkerd",
		Items: []Added{
			{containers, []string{"linkerd-proxy", "linkerd-init", "linkerd-debug", "linkerd-network-validator"}},
			{volumeLists, []string{"linkerd-*"}},
			{labels, []string{"linkerd.io/*"}},
		},
	},
	{Owner: "Dapr", Items: []Added{{containers, []string{"daprd"}}, {volumeLists, []string{"dapr-*"}}}},
	{
		Owner: "the agent injector of Vault",
		Items: []Added{
			{containers, []string{"vault-agent", "vault-agent-init"}},
			{volumeLists, []string{"vault-secrets*", "vault-tls-secrets", "home-init", "home-sidecar"}},
		},
	},
	{
		Owner: "OpenTelemetry", Managers: []string{"opentelemetry-operator"},
		Items: []Added{{slices.Concat(containers, volumeLists), []string{"opentelemetry-auto-instrumentation*"}}},
	},
	{
		Owner: "the injector of tokens of service accounts, also those of clouds",
		Items: []Added{
			{volumeLists, []string{"kube-api-access-*", "aws-iam-token", "azure-identity-token", "eks-pod-identity-token"}},
			{env, []string{"AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_STS_REGIONAL_ENDPOINTS", "AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_FEDERATED_TOKEN_FILE", "AZURE_AUTHORITY_HOST"}},
		},
	},
	{
		Owner: "OpenShift",
		Managers: []string{
			"openshift-controller-manager", "cluster-policy-controller", "pod-security-admission-label-synchronization-controller", "service-ca-operator",
		},
		Items: []Added{{[]string{"imagePullSecrets", "secrets"}, []string{"*-dockercfg-*"}}},
	},
	{Owner: "the token controller", Items: []Added{{[]string{"secrets"}, []string{"*-token-*"}}}},
	{Owner: "Reloader", Managers: []string{"Reloader", "reloader"}, Items: []Added{{env, []string{"STAKATER_*"}}}},
	{Owner: "cert-manager and trust-manager", Managers: []string{"cert-manager*", "cainjector", "trust-manager*"}},
	{Owner: "External Secrets and replicators of Secrets", Managers: []string{"external-secrets*", "externalsecrets.external-secrets.io/*", "vault-secrets-operator", "kubernetes-replicator", "kubernetes-reflector"}},
	{Owner: "Flagger, Argo Rollouts and KEDA", Managers: []string{"flagger", "rollouts-controller", "keda*"}},
	{Owner: "policy engines", Managers: []string{"kyverno*", "gatekeeper*"}},
	{Owner: "Rancher", Managers: []string{"rancher", "fleetagent"}, Items: []Added{{labels, []string{"field.cattle.io/*"}}}},
	{Owner: "the Operator Lifecycle Manager", Managers: []string{"olm", "catalog"}, Items: []Added{{labels, []string{"olm.*", "operators.coreos.com/*"}}}},
	{Owner: "Velero", Managers: []string{"velero*"}, Items: []Added{{labels, []string{"velero.io/*"}}}},
}

var (
	containers  = []string{"containers", "initContainers"}
	volumeLists = []string{"volumes", "volumeMounts"}
	env         = []string{"env"}
	labels      = []string{"labels"}
)

// AddsByContract reports whether a field manager is that of one of the Adders.
func AddsByContract(manager string) bool {
	return slices.ContainsFunc(Adders, func(a Adder) bool { return matchesAny(a.Managers, manager) })
}

// AddedByContract reports whether one of the Adders adds an item or key of this name to the list or map that is called
// field.
func AddedByContract(field, name string) bool {
	return slices.ContainsFunc(Adders, func(a Adder) bool {
		return slices.ContainsFunc(a.Items, func(i Added) bool { return slices.Contains(i.Fields, field) && matchesAny(i.Names, name) })
	})
}

// matchesAny reports whether a name matches one of some patterns, in which "*" stands for any text.
func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		parts := strings.Split(pattern, "*")
		rest, begins := strings.CutPrefix(name, parts[0])
		if !begins {
			return false
		}
		for _, part := range parts[1:] {
			i := strings.Index(rest, part)
			if i < 0 {
				return false
			}
			rest = rest[i+len(part):]
		}
		return rest == "" || strings.HasSuffix(pattern, "*")
	})
}
