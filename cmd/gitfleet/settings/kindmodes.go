package settings

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
)

func isDriftMode(mode string) bool {
	return mode == revertDrift || mode == proposeDrift || mode == reportDrift
}

// validateKindMode returns an error if the mode of a kind is invalid. An unknown kind may be
// one that a CustomResourceDefinition defines.
func validateKindMode(kind, mode string) error {
	gk := groupKind(kind)
	known := api.KnownKinds()
	slices.SortFunc(known, func(a, b api.GroupKind) int { return strings.Compare(a.String(), b.String()) })
	switch {
	case !isDriftMode(mode):
		return fmt.Errorf("%q is none of revert, propose, report", mode)
	case gk.Kind == "" || strings.Contains(gk.Kind, "/") || strings.Contains(kind, "/") && gk.Group == "":
		return errors.New("is no kind; write KIND or GROUP/KIND, such as Secret or apps/Deployment")
	case slices.Contains(known, gk):
		return nil
	case gk.Group != "":
		return misspelled(gk, known)
	}
	if other, found := similarKind(gk.Kind, known); found {
		return fmt.Errorf("is no kind of the core group; did you mean %s?", kindText(other))
	}
	return errors.New("is no kind of the core group; write GROUP/KIND, such as apps/Deployment")
}

// misspelled returns an error if Kubernetes has a similar kind in the same group, or in another one
// if it has no such group. Every group of a CustomResourceDefinition has a dot in its name.
func misspelled(gk api.GroupKind, known []api.GroupKind) error {
	candidates := slices.DeleteFunc(slices.Clone(known), func(other api.GroupKind) bool { return other.Group != gk.Group })
	if len(candidates) == 0 && !strings.Contains(gk.Group, ".") {
		candidates = known
	}
	if other, found := similarKind(gk.Kind, candidates); found {
		return fmt.Errorf("is no kind of Kubernetes; did you mean %s?", kindText(other))
	}
	return nil
}

// similarKind returns the first of some kinds with the name that is most similar to one.
func similarKind(name string, kinds []api.GroupKind) (similar api.GroupKind, found bool) {
	var names []string
	for _, k := range kinds {
		names = append(names, k.Kind)
	}
	i := slices.Index(names, api.Closest(name, names))
	if i < 0 {
		return api.GroupKind{}, false
	}
	return kinds[i], true
}

// groupKind reads KIND or GROUP/KIND.
func groupKind(text string) api.GroupKind {
	group, kind, grouped := strings.Cut(text, "/")
	if !grouped {
		return api.GroupKind{Kind: text}
	}
	return api.GroupKind{Group: group, Kind: kind}
}

// kindText is a kind as groupKind reads it.
func kindText(gk api.GroupKind) string { return strings.TrimPrefix(gk.Group+"/"+gk.Kind, "/") }

// Modes are the modes as members take them.
func (m KindModes) Modes() map[api.GroupKind]api.DriftMode {
	out := make(map[api.GroupKind]api.DriftMode, len(m))
	for kind, mode := range m {
		out[groupKind(kind)] = api.DriftMode(mode)
	}
	return out
}
