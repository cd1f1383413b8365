package placement

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Propagation is the operator's settings for what is never propagated. The zero value, and
// nil, change nothing.
type Propagation struct {
	denied     []kinds
	allowed    []kinds
	namespaces []string
}

// kinds are a group, one of its versions, or single kinds of that version.
type kinds struct {
	group, version string
	names          []string // empty: all
}

// ParsePropagation reads the settings of KubeFleet's flags of these names. Entries are
// separated by ";": group, group/version, group/version/Kind,Kind, and v1/Kind,Kind for the
// core group. Skipped kinds are added to the default list; allowed kinds replace it, and
// nothing else is propagated. Namespaces may be separated by "," as well.
func ParsePropagation(skippedAPIs, allowedAPIs, skippedNamespaces string) (*Propagation, error) {
	denied, err := parseKinds(skippedAPIs)
	if err != nil {
		return nil, fmt.Errorf("skipped-propagating-apis: %w", err)
	}
	allowed, err := parseKinds(allowedAPIs)
	if err != nil {
		return nil, fmt.Errorf("allowed-propagating-apis: %w", err)
	}
	if len(denied) > 0 && len(allowed) > 0 {
		return nil, fmt.Errorf("skipped-propagating-apis and allowed-propagating-apis exclude each other: set one of them")
	}
	return &Propagation{denied: denied, allowed: allowed, namespaces: fields(skippedNamespaces, ";,")}, nil
}

func fields(s, separators string) []string {
	var out []string
	for _, f := range strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
		if f = strings.TrimSpace(f); f != "" {
			out = append(out, f)
		}
	}
	return out
}

func parseKinds(s string) ([]kinds, error) {
	var all []kinds
	for _, entry := range fields(s, ";") {
		parts := strings.Split(entry, "/")
		if slices.Contains(parts, "") || len(parts) > 3 {
			return nil, fmt.Errorf("%q is none of group, group/version, group/version/Kind, v1/Kind", entry)
		}
		var k kinds
		switch {
		case len(parts) == 3:
			k = kinds{parts[0], parts[1], fields(parts[2], ",")}
		case len(parts) == 2 && parts[0] == "v1":
			k = kinds{"", "v1", fields(parts[1], ",")}
		case len(parts) == 2:
			k = kinds{parts[0], parts[1], nil}
		default:
			k = kinds{parts[0], "", nil}
		}
		all = append(all, k)
	}
	return all, nil
}

func (k kinds) has(gvk schema.GroupVersionKind) bool {
	return k.group == gvk.Group &&
		(k.version == "" || k.version == gvk.Version) &&
		(len(k.names) == 0 || slices.Contains(k.names, gvk.Kind))
}

// excludes reports whether objects of a kind are never propagated; denied is the default.
func (p *Propagation) excludes(gvk schema.GroupVersionKind, denied bool) bool {
	has := func(k kinds) bool { return k.has(gvk) }
	switch {
	case isConfiguration(gvk):
		return true
	case p == nil:
		return denied
	case len(p.allowed) > 0:
		return !slices.ContainsFunc(p.allowed, has)
	}
	return denied || slices.ContainsFunc(p.denied, has)
}

func (p *Propagation) reserved(namespace string) bool {
	return api.ReservedNamespace(namespace) || p != nil && slices.Contains(p.namespaces, namespace)
}
