package simulated

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	discovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// plain serves the requests that are not about objects: health, version and discovery.
func (c *Cluster) plain(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	c.mu.Lock()
	kinds := c.kinds()
	c.mu.Unlock()
	aggregated := strings.Contains(r.Header.Get("Accept"), "as=APIGroupDiscoveryList")
	switch {
	case len(parts) == 1 && (parts[0] == "readyz" || parts[0] == "livez" || parts[0] == "healthz"):
		_, _ = w.Write([]byte("ok"))
	case len(parts) == 1 && parts[0] == "version":
		numbers := strings.Split(strings.TrimPrefix(c.fleet.options.Version, "v"), ".")
		write(w, http.StatusOK, map[string]string{
			"major": numbers[0], "minor": numbers[min(1, len(numbers)-1)], "gitVersion": c.fleet.options.Version, "platform": "simulated/any",
		})
	case len(parts) == 1 && (parts[0] == "api" || parts[0] == "apis") && aggregated:
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		respond(w, groups(kinds, parts[0] == "api"))
	case len(parts) == 1 && parts[0] == "api":
		write(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case len(parts) == 1 && parts[0] == "apis":
		write(w, http.StatusOK, legacy(groups(kinds, false)))
	case len(parts) == 2 && parts[0] == "api":
		resources(w, kinds, "", parts[1])
	case len(parts) == 3 && parts[0] == "apis":
		resources(w, kinds, parts[1], parts[2])
	default:
		fail(w, missing())
	}
}

// groups returns the kinds in the form of aggregated discovery.
func groups(kinds []*kind, coreOnly bool) discovery.APIGroupDiscoveryList {
	list := discovery.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"}}
	for _, k := range kinds {
		if (k.Group == "") != coreOnly {
			continue
		}
		g := slices.IndexFunc(list.Items, func(g discovery.APIGroupDiscovery) bool { return g.Name == k.Group })
		if g < 0 {
			g = len(list.Items)
			list.Items = append(list.Items, discovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: k.Group}})
		}
		group := &list.Items[g]
		v := slices.IndexFunc(group.Versions, func(v discovery.APIVersionDiscovery) bool { return v.Version == k.Version })
		if v < 0 {
			v = len(group.Versions)
			group.Versions = append(group.Versions, discovery.APIVersionDiscovery{Version: k.Version, Freshness: discovery.DiscoveryFreshnessCurrent})
		}
		group.Versions[v].Resources = append(group.Versions[v].Resources, k.described())
	}
	return list
}

func (k *kind) described() discovery.APIResourceDiscovery {
	answer := &metav1.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}
	r := discovery.APIResourceDiscovery{
		Resource: k.plural, ResponseKind: answer, Scope: discovery.ScopeCluster,
		SingularResource: strings.ToLower(k.Kind), Verbs: verbs, ShortNames: k.short,
	}
	if k.namespaced {
		r.Scope = discovery.ScopeNamespace
	}
	if k.status {
		r.Subresources = append(r.Subresources, discovery.APISubresourceDiscovery{Subresource: "status", ResponseKind: answer, Verbs: []string{"get", "patch", "update"}})
	}
	return r
}

// legacy returns the groups without their resources, as discovery was before aggregation.
func legacy(list discovery.APIGroupDiscoveryList) metav1.APIGroupList {
	out := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, g := range list.Items {
		group := metav1.APIGroup{Name: g.Name}
		for _, v := range g.Versions {
			group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: g.Name + "/" + v.Version, Version: v.Version})
		}
		group.PreferredVersion = group.Versions[0]
		out.Groups = append(out.Groups, group)
	}
	return out
}

// resources serves the kinds of one version of a group.
func resources(w http.ResponseWriter, kinds []*kind, group, version string) {
	out := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: metav1.GroupVersion{Group: group, Version: version}.String()}
	for _, k := range kinds {
		if k.Group != group || k.Version != version {
			continue
		}
		r := metav1.APIResource{
			Name: k.plural, SingularName: strings.ToLower(k.Kind), Namespaced: k.namespaced, Kind: k.Kind, Verbs: verbs, ShortNames: k.short,
		}
		out.APIResources = append(out.APIResources, r)
		if k.status {
			r.Name, r.SingularName, r.ShortNames, r.Verbs = k.plural+"/status", "", nil, []string{"get", "patch", "update"}
			out.APIResources = append(out.APIResources, r)
		}
	}
	if len(out.APIResources) == 0 {
		fail(w, missing())
		return
	}
	slices.SortFunc(out.APIResources, func(a, b metav1.APIResource) int { return cmp.Compare(a.Name, b.Name) })
	write(w, http.StatusOK, out)
}
