package edit

import (
	"fmt"
	"path"
	"strings"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/proposal/yamledit"
)

// A kustomizationText has the parts of a kustomization file that are edited.
type kustomizationText struct {
	Replicas []struct {
		Name string `yaml:"name"`
	} `yaml:"replicas"`
	Images                []imageEntry `yaml:"images"`
	Patches               []patchEntry `yaml:"patches"`
	PatchesJSON6902       []patchEntry `yaml:"patchesJson6902"`
	PatchesStrategicMerge []string     `yaml:"patchesStrategicMerge"`
}

type patchEntry struct {
	Path   string         `yaml:"path"`
	Patch  string         `yaml:"patch"`
	Target map[string]any `yaml:"target"`
}

type imageEntry struct {
	Name    string `yaml:"name"`
	NewName string `yaml:"newName"`
	NewTag  any    `yaml:"newTag"`
	Digest  string `yaml:"digest"`
}

// transformers returns the entries of replicas and images that set a field.
func (k *kustomizationText) transformers(file string, source *api.Object, e yamledit.FieldEdit) []site {
	var out []site
	for i, r := range k.Replicas {
		if e.Path == "/spec/replicas" && !e.Remove && strings.Contains(source.ID.Name, r.Name) {
			out = append(out, site{file, yamledit.FirstDocument, []yamledit.FieldEdit{{Path: fmt.Sprintf("/replicas/%d/count", i), Value: e.Value}}})
		}
	}
	after, isText := e.Value.(string)
	if !isText || !strings.HasSuffix(e.Path, "/image") {
		return out
	}
	now, _ := yamledit.LookUp(source.Content.Object, api.SplitPointer(e.Path))
	before, _ := now.(string)
	for i, entry := range k.Images {
		if edits := entry.edits(fmt.Sprintf("/images/%d/", i), imageOf(before), imageOf(after)); edits != nil {
			out = append(out, site{file, yamledit.FirstDocument, edits})
		}
	}
	return out
}

// An image is an image reference, split into its parts.
type image struct{ name, tag, digest string }

func imageOf(text string) image {
	var out image
	out.name, out.digest, _ = strings.Cut(text, "@")
	if i := strings.LastIndex(out.name, ":"); i > strings.LastIndex(out.name, "/") {
		out.name, out.tag = out.name[:i], out.name[i+1:]
	}
	return out
}

// edits returns the edits of an entry in images that turn one image into another; nil if
// the entry is for another image, or cannot express it.
func (e imageEntry) edits(at string, before, after image) []yamledit.FieldEdit {
	if before.name != e.NewName && (e.NewName != "" || before.name != e.Name) || (before.digest == "") != (after.digest == "") || after.digest == "" && after.tag == "" {
		return nil
	}
	var out []yamledit.FieldEdit
	if before.name != after.name {
		out = append(out, yamledit.FieldEdit{Path: at + "newName", Value: after.name})
	}
	switch {
	case after.digest != before.digest:
		out = append(out, yamledit.FieldEdit{Path: at + "digest", Value: after.digest})
	case after.tag != before.tag:
		out = append(out, yamledit.FieldEdit{Path: at + "newTag", Value: after.tag})
	}
	return out
}

// isKustomization reports whether a file is a kustomization by its name.
func isKustomization(file string) bool {
	base := path.Base(file)
	return base == "kustomization.yaml" || base == "kustomization.yml" || base == "Kustomization"
}

// appendTo returns the edit that appends an item to a list of a kustomization, which it may not have yet.
func appendTo(kustomization []byte, list string, item any) yamledit.FieldEdit {
	if n, err := yamledit.FirstDocument(kustomization); err == nil {
		if _, there := yamledit.Entry(n, list); there != nil {
			return yamledit.FieldEdit{Path: "/" + list + "/-", Value: item}
		}
	}
	return yamledit.FieldEdit{Path: "/" + list, Value: []any{item}}
}
