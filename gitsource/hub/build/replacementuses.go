package build

import (
	"fmt"
	"iter"
	"path"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/utils"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/listitem"
)

// A fieldPath is a path in a replacement, with the objects that it is for.
type fieldPath struct {
	objects     types.Selector
	path, field string
}

// A foundReplacement is a replacement, and where it is written.
type foundReplacement struct {
	types.Replacement
	origin api.Origin
	field  string
}

// replacements yields the replacements of the kustomizations, also those in files.
func (b *builder) replacements() iter.Seq[foundReplacement] {
	return func(yield func(foundReplacement) bool) {
		for _, k := range b.parts {
			for i, r := range k.spec.Replacements {
				origin, field := api.Origin{Path: k.file, Kustomization: b.File}, fmt.Sprintf("replacements[%d]", i)
				all := []types.Replacement{r.Replacement}
				if r.Path != "" {
					origin.Path, field = path.Join(k.dir, r.Path), ""
					if text := b.texts[origin.Path]; sigsyaml.Unmarshal(text, &all) != nil {
						all = make([]types.Replacement, 1)
						_ = sigsyaml.Unmarshal(text, &all[0]) // the build parses it, too
					}
				}
				for n, replacement := range all {
					if r.Path != "" {
						field = fmt.Sprintf("[%d]", n)
					}
					if !yield(foundReplacement{replacement, origin, field}) {
						return
					}
				}
			}
		}
	}
}

// replacementUses returns the indexes by which replacements address items of lists, with the items of the result.
func (b *builder) replacementUses(built resmap.ResMap) []listitem.Use {
	var out []listitem.Use
	for r := range b.replacements() {
		for _, p := range fieldPaths(r.Replacement, r.field) {
			out = append(out, b.usesOf(p, built, r.origin)...)
		}
	}
	return out
}

// fieldPaths returns the paths of a replacement: of its source, and of its targets.
func fieldPaths(r types.Replacement, field string) []fieldPath {
	var out []fieldPath
	if r.Source != nil {
		out = append(out, fieldPath{objects: types.Selector{ResId: r.Source.ResId}, path: r.Source.FieldPath, field: field + ".source.fieldPath"})
	}
	for t, target := range r.Targets {
		for n, p := range target.FieldPaths {
			if target.Select != nil {
				out = append(out, fieldPath{objects: *target.Select, path: p, field: fmt.Sprintf("%s.targets[%d].fieldPaths[%d]", field, t, n)})
			}
		}
	}
	return out
}

// usesOf returns the indexes in a path of a replacement.
func (b *builder) usesOf(p fieldPath, built resmap.ResMap, origin api.Origin) []listitem.Use {
	var keys []string
	for _, key := range utils.SmarterPathSplitter(p.path, ".") {
		if strings.HasPrefix(key, "[") {
			break // what is behind it is in an item that has a name
		}
		keys = append(keys, api.EscapeKey(key))
	}
	pointer := "/" + strings.Join(keys, "/")
	if lists, _ := listitem.Lists(pointer, false); lists == nil {
		return nil
	}
	origin.Line = b.lineOf(origin.Path, p.path)
	var out []listitem.Use
	for _, res := range built.Resources() {
		object, err := res.Map()
		if err != nil || !mayBe(res, p.objects) {
			continue
		}
		id := api.ID{Group: res.GetGvk().Group, Kind: res.GetKind(), Namespace: res.GetNamespace(), Name: res.GetName()}
		for _, use := range listitem.Uses(id, object, pointer, false) {
			use.Origin, use.Field = origin, strings.TrimPrefix(p.field, ".")
			out = append(out, use)
		}
	}
	return out
}

// mayBe reports whether a result may be an object that a replacement selects. The build may have changed its name and
// its namespace since then.
func mayBe(res *resource.Resource, s types.Selector) bool {
	named, err := regexp.MatchString(s.Name, res.GetName())
	return err == nil && named && (s.Kind == "" || s.Kind == res.GetKind()) && (s.Group == "" || s.Group == res.GetGvk().Group)
}

// lineOf returns the line of the first value with a text in a file; zero if there is none.
func (b *builder) lineOf(file, value string) int {
	var doc yaml.Node
	if yaml.Unmarshal(b.texts[file], &doc) != nil {
		return 0
	}
	var find func(*yaml.Node) int
	find = func(n *yaml.Node) int {
		if n.Kind == yaml.ScalarNode && n.Value == value {
			return n.Line
		}
		for _, c := range n.Content {
			if line := find(c); line > 0 {
				return line
			}
		}
		return 0
	}
	return find(&doc)
}
