package build

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/kustomize/api/types"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/listitem"
)

// A JSON patch means the item that is at its index when kustomize applies the patch, which is not in the result. The
// build therefore gets patches with additional operations, which copy the list to a field of its own at the top of the
// object, and collect takes these fields away again.

// listField is the beginning of the names of the fields with copies of lists.
const listField = "gitfleet.dev/list-"

// marked returns the kustomization files of the build whose patches address items by their indexes, with operations
// that copy the lists, or have targets that may match nothing, with patches that find that out.
func (b *builder) marked() map[string]types.Kustomization {
	out, targets := map[string]types.Kustomization{}, canHaveTargets(b)
	for _, k := range b.parts {
		spec, marked := k.spec, false
		mark := func(field string, patches []types.Patch) []types.Patch {
			patches = slices.Clone(patches)
			for i := range patches {
				marked = b.mark(k, fmt.Sprintf("%s[%d]", field, i), &patches[i]) || marked
			}
			return patches
		}
		if spec.Patches = mark("patches", spec.Patches); targets {
			spec.Patches = withTargets(b, k, spec.Patches)
		}
		marked = marked || len(spec.Patches) > len(k.spec.Patches)
		//lint:ignore SA1019 kustomize still reads it, and so must we
		spec.PatchesJson6902 = mark("patchesJson6902", spec.PatchesJson6902)
		if marked {
			out[k.file] = spec
		}
	}
	return out
}

// mark adds the operations to a JSON patch. It reports whether the patch has indexes.
func (b *builder) mark(k *kustomization, field string, patch *types.Patch) bool {
	text, origin := patch.Patch, api.Origin{Path: k.file, Kustomization: b.File}
	if patch.Path != "" {
		origin.Path = path.Join(k.dir, patch.Path)
		text, field = string(b.texts[origin.Path]), ""
	}
	data := []byte(text)
	var err error
	if !strings.HasPrefix(text, "[") { // kustomize reads the others as JSON
		data, err = sigsyaml.YAMLToJSON(data)
	}
	var operations []json.RawMessage
	if err != nil || json.Unmarshal(data, &operations) != nil {
		return false // a strategic merge patch, or none
	}
	lines := b.operationLines(origin.Path, field)
	first := len(b.uses)
	var out []any
	for i, raw := range operations {
		var o struct{ Op, Path string }
		if json.Unmarshal(raw, &o) == nil && o.Op != "test" {
			lists, indexes := listitem.Lists(o.Path, o.Op != "remove" && o.Op != "replace")
			for n, list := range lists {
				if origin.Line = 0; i < len(lines) {
					origin.Line = lines[i]
				}
				name := listField + strconv.Itoa(len(b.uses))
				out = append(out, map[string]string{"op": "copy", "from": list, "path": "/" + api.EscapeKey(name)})
				b.uses = append(b.uses, indexUse{origin, strings.TrimPrefix(fmt.Sprintf("%s[%d].path", field, i), "."), o.Path, list, indexes[n]})
			}
		}
		out = append(out, raw)
	}
	if len(b.uses) == first {
		return false
	}
	marked, err := json.Marshal(out)
	patch.Path, patch.Patch = "", string(marked)
	return err == nil
}

// operationLines returns the lines of the operations of a JSON patch: of a file, or of a field of a kustomization.
func (b *builder) operationLines(file, field string) []int {
	var doc yaml.Node
	before := 0
	if yaml.Unmarshal(b.texts[file], &doc) != nil || len(doc.Content) == 0 {
		return nil
	}
	n := doc.Content[0]
	if field != "" {
		list, rest, _ := strings.Cut(field, "[")
		index, _ := strconv.Atoi(strings.TrimSuffix(rest, "]"))
		items := child(n, list)
		if items == nil || index >= len(items.Content) {
			return nil
		}
		text := child(items.Content[index], "patch")
		if text == nil {
			return nil
		}
		if before = text.Line - 1; text.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
			before++
		}
		doc = yaml.Node{}
		if yaml.Unmarshal([]byte(text.Value), &doc) != nil || len(doc.Content) == 0 {
			return nil
		}
		n = doc.Content[0]
	}
	var out []int
	for _, item := range n.Content {
		out = append(out, before+item.Line)
	}
	return out
}

// takeLists removes the copies of lists from an object, and records them.
func (b *builder) takeLists(value any, out *Built) {
	object, isMap := value.(map[string]any)
	if !isMap || len(b.uses) == 0 {
		return
	}
	version, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	id := api.ID{Group: schema.FromAPIVersionAndKind(version, kind).Group, Kind: kind, Namespace: namespace, Name: name}
	for i, u := range b.uses {
		copied, there := object[listField+strconv.Itoa(i)]
		if !there {
			continue
		}
		delete(object, listField+strconv.Itoa(i))
		if list, isList := copied.([]any); isList {
			out.Uses = append(out.Uses, listitem.Use{
				Origin: u.origin, Field: u.field, Object: id, Pointer: u.pointer, List: u.list, Index: u.index, Items: listitem.Of(list),
			})
		}
	}
}
