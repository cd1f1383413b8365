package migration

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub/validation"
	"github.com/gitfleet/gitfleet/placement/api"
)

// overlayKind is the kind of the overlays.
const overlayKind = "ClusterOverlay"

const overlayManifest = `---
apiVersion: gitfleet.dev/v1alpha1
kind: ClusterOverlay
metadata:
  name: %s
spec:
`

// An overlayText is an overlay for one unit, or for several for which all but the paths is the same.
type overlayText struct {
	parts [][]string
	// required says that each cluster has a directory of some part.
	required bool
	except   []string
	// fields are the other fields of the spec.
	fields string
	of     selection
	units  []*unit
}

// overlayTexts returns the overlays, and adds each to what its placement selects.
func (f *finder) overlayTexts(selected map[selection][]envelope) string {
	var all []*overlayText
	for _, name := range slices.Sorted(maps.Keys(f.units)) {
		o := f.overlayText(f.units[name])
		if o == nil {
			continue
		}
		i := slices.IndexFunc(all, func(other *overlayText) bool {
			return f.merges && !f.alone[name] && !f.alone[other.units[0].name] && other.canTake(o)
		})
		if i < 0 {
			all = append(all, o)
			continue
		}
		all[i].parts, all[i].units = append(all[i].parts, o.parts...), append(all[i].units, o.units...)
		all[i].required = all[i].required || o.required
	}
	var b strings.Builder
	f.merged = map[string][]*unit{}
	for _, o := range all {
		name := o.units[0].name
		if len(o.units) > 1 {
			name = f.mergedName()
			f.merged[name] = o.units
		}
		o.write(&b, name)
		selected[o.of] = append(selected[o.of], envelope{overlayKind, name})
	}
	return b.String()
}

// mergedName returns a name for an overlay of several units that none of them has.
func (f *finder) mergedName() string {
	for n := 1; ; n++ {
		name := "kustomizations"
		if n > 1 {
			name = fmt.Sprintf("%s-%d", name, n)
		}
		if f.units[name] == nil && f.merged[name] == nil {
			return name
		}
	}
}

// overlayText returns the overlay of a unit; nil if there can be none.
func (f *finder) overlayText(u *unit) *overlayText {
	parts, partial, ok := f.partsOf(u)
	if !ok {
		return nil
	}
	o := &overlayText{parts: parts, required: !partial, except: u.except, units: []*unit{u}}
	switch {
	case u.namespace == api.Namespace:
		f.leave("%s: nothing can be placed in namespace %s, which is not written into the overlay; objects without a namespace fail", u.name, u.namespace)
	case u.namespace != "":
		o.fields += fmt.Sprintf("  namespace: %s\n", u.namespace)
	}
	if reserved := u.reserved(); len(reserved) > 0 {
		o.fields += fmt.Sprintf("  reservedNamespaces: [%s] # objects may be in it, as they are with the other tool\n", strings.Join(reserved, ", "))
	}
	o.fields += f.substitutions.postBuild(u.name)
	o.of = selection{strings.Join(slices.Sorted(maps.Keys(u.dirs)), ","), f.apart[envelope{overlayKind, u.name}]}
	if len(parts) == 1 && len(parts[0]) == 1 && strings.Contains(parts[0][0], "${") || u.parts != nil {
		o.of.clusters = strings.Join(slices.Sorted(maps.Keys(f.clusters)), ",")
	}
	return o
}

func pathsIn(parts [][]string) int { return len(slices.Concat(parts...)) }

// canTake reports whether an overlay can have the parts of another one as well. What cannot be built keeps an overlay of its own.
func (o *overlayText) canTake(other *overlayText) bool {
	return !o.of.apart && o.of == other.of && o.fields == other.fields && o.except == nil && other.except == nil && pathsIn(o.parts)+pathsIn(other.parts) <= validation.MostPaths
}

func (o *overlayText) write(b *strings.Builder, name string) {
	fmt.Fprintf(b, overlayManifest, name)
	if len(o.parts) == 1 {
		b.WriteString("  " + strings.ReplaceAll(partText(o.parts[0]), "\n", "\n  ") + "\n")
	} else {
		b.WriteString("  parts:\n")
		for _, part := range o.parts {
			b.WriteString("  - " + strings.ReplaceAll(partText(part), "\n", "\n    ") + "\n")
		}
	}
	if len(o.except) > 0 {
		b.WriteString("  except:\n  - " + strings.Join(o.except, "\n  - ") + "\n")
	}
	if !o.required {
		b.WriteString("  whenMissing: Ignore\n")
	}
	b.WriteString(o.fields)
}

// setApart sets apart the units of an overlay that cannot be built for one of their clusters, and gives each that has objects of another
// one an overlay of its own, since an overlay cannot have an object twice.
func (p *Proposal) setApart(units []*unit, o *api.BuiltOverlay) {
	owners := map[string]map[api.ID]*unit{} // by cluster
	for _, u := range units {
		for c, dir := range u.dirs {
			key, known := o.BuildFor(dir, c)
			b := o.Builds[key]
			if !known || b == nil {
				continue
			}
			if b.Err != "" {
				p.finder.apart[envelope{overlayKind, u.name}] = true
				continue
			}
			if owners[c] == nil {
				owners[c] = map[api.ID]*unit{}
			}
			for _, object := range b.Objects {
				if owners[c][object.ID] == nil {
					owners[c][object.ID] = u
				} else if owners[c][object.ID] != u {
					p.finder.alone[u.name], p.finder.changed = true, true
				}
			}
		}
	}
}

// partText returns the fields with the paths of an overlay, or of a part of one.
func partText(paths []string) string {
	var quoted []string
	for _, text := range paths {
		if strings.HasPrefix(text, "*") { // which YAML takes for an alias
			text = fmt.Sprintf("%q", text)
		}
		quoted = append(quoted, text)
	}
	if len(quoted) == 1 {
		return "path: " + quoted[0]
	}
	return "paths:\n- " + strings.Join(quoted, "\n- ")
}
