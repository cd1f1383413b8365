package account

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// A Target is a cluster with the access that a user has to it.
type Target struct {
	// Config has the user's credentials. Its clients limit what the cluster may answer.
	Config  *rest.Config
	cluster clientcmdapi.Cluster // with embedded certificates
}

// loadingRules finds the user's kubeconfigs as kubectl does: the given one, those of $KUBECONFIG,
// or ~/.kube/config.
func loadingRules(file string) *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath, rules.WarnIfAllMissing = file, false
	return rules
}

// Kubeconfigs returns the user's kubeconfigs as kubectl finds them: the given one, those of
// $KUBECONFIG, or ~/.kube/config.
func Kubeconfigs(file string) []string { return loadingRules(file).GetLoadingPrecedence() }

// Contexts returns the names of the contexts of these kubeconfigs, sorted.
func Contexts(file string) ([]string, error) {
	config, err := loadingRules(file).Load()
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(config.Contexts)), nil
}

// Find returns the cluster of a context in kubeconfigs. As in kubectl, the first one that
// defines the context is used. An empty context is the current one.
func Find(kubeconfigs []string, context string) (*Target, error) {
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: kubeconfigs}
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: context})
	raw, err := loaded.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	if context == "" {
		context = raw.CurrentContext
	}
	kctx := raw.Contexts[context]
	if kctx == nil {
		return nil, fmt.Errorf("the kubeconfig has no context %q; it has %s", context, cmp.Or(strings.Join(slices.Sorted(maps.Keys(raw.Contexts)), ", "), "none"))
	}
	cfg, err := loaded.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("context %s: %w", context, err)
	}
	if err := clientcmdapi.FlattenConfig(&raw); err != nil {
		return nil, fmt.Errorf("context %s: %w", context, err)
	}
	cluster := raw.Clusters[kctx.Cluster]
	if cluster == nil {
		return nil, errors.New("context " + context + ": it names no cluster")
	}
	return &Target{connection.Bounded(cfg), *cluster}, nil
}

// Kubeconfig returns a kubeconfig for the same cluster with a token. Its only context has the
// name of the member.
func (t *Target) Kubeconfig(member, token string) ([]byte, error) {
	cluster := t.cluster
	cluster.LocationOfOrigin, cluster.Extensions = "", nil
	c := clientcmdapi.NewConfig()
	c.Clusters[member] = &cluster
	c.AuthInfos[member] = &clientcmdapi.AuthInfo{Token: token}
	c.Contexts[member] = &clientcmdapi.Context{Cluster: member, AuthInfo: member}
	c.CurrentContext = member
	return clientcmd.Write(*c)
}
