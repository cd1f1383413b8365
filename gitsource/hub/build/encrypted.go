package build

import (
	"bytes"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
)

// encryptedValues returns the values that are encrypted in the files of the build, and the kinds of objects that may have
// them. An empty kind stands for every kind.
func (b *builder) encryptedValues() (values []string, kinds map[string]bool) {
	kinds = map[string]bool{}
	for name := range b.texts {
		found := b.graph.tree.Encrypted(name)
		if len(found) == 0 {
			continue
		}
		values = append(values, found...)
		for _, document := range b.positions[name] {
			kinds[document.kind] = true
		}
		if len(b.positions[name]) == 0 { // a file of a generator
			kinds["ConfigMap"], kinds["Secret"] = true, true
		}
	}
	return values, kinds
}

// checkPieces refuses replacements that take a part of a value which may be encrypted in the commit: of a part nobody can say
// that it is secret.
func (b *builder) checkPieces() {
	values, kinds := b.encryptedValues()
	if len(values) == 0 {
		return
	}
	var all []foundReplacement
	for r := range b.replacements() {
		all = append(all, r)
	}
	for _, k := range b.parts {
		for _, p := range k.spec.Patches {
			if p.Options != nil && p.Options.AllowKindChange {
				kinds[""] = true
			}
		}
	}
	secret := func(r types.Replacement) bool {
		return r.Source == nil || r.Source.Kind == "" || kinds[""] || kinds[r.Source.Kind]
	}
	for before := -1; before != len(kinds); { // what a replacement has copied may be copied again
		before = len(kinds)
		for _, r := range all {
			for _, t := range r.Targets {
				if secret(r.Replacement) && t.Select != nil {
					kinds[t.Select.Kind] = true
				}
			}
		}
	}
	for _, r := range all {
		if r.Source != nil && r.Source.Options != nil && r.Source.Options.Delimiter != "" && secret(r.Replacement) {
			b.fail(r.origin.Path, "%s.source.options.delimiter: it takes a part of a value that may be encrypted with SOPS, and a part is not recognized as secret; "+
				"name the kind of an object without encrypted values as source.kind, or encrypt the part by itself", strings.TrimPrefix(r.field, "."))
		}
	}
	for name, text := range b.texts {
		if bytes.Contains(text, []byte("ReplacementTransformer")) && bytes.Contains(text, []byte("delimiter")) {
			b.fail(name, "a ReplacementTransformer may take a part of a value that is encrypted with SOPS, and a part is not recognized as secret; write it under replacements")
		}
	}
}

// checkNames refuses objects whose names, which are shown everywhere, have a value that is encrypted in the commit. Only
// replacements and variables of kustomize put one there; others have an encrypted name in their file.
func (b *builder) checkNames(built resmap.ResMap) {
	values, _ := b.encryptedValues()
	if len(values) == 0 || !b.copiesValues() {
		return
	}
	const short = 6 // shorter values are parts of many words
	secret := func(text string) bool {
		return slices.ContainsFunc(values, func(v string) bool { return v != "" && (v == text || len(v) >= short && strings.Contains(text, v)) })
	}
	for _, r := range built.Resources() {
		if slices.ContainsFunc([]string{r.GetName(), r.GetNamespace(), r.GetKind(), r.GetApiVersion()}, secret) {
			b.fail(b.File, "replacements, or vars, copy a value that is encrypted with SOPS into the name, the namespace or the kind of an object, which are shown in many places; use another value")
			return
		}
	}
}

// copiesValues reports whether the build copies values from one object into others.
func (b *builder) copiesValues() bool {
	for range b.replacements() {
		return true
	}
	for _, k := range b.parts {
		//lint:ignore SA1019 kustomize still builds them
		if len(k.spec.Vars) > 0 {
			return true
		}
	}
	for _, text := range b.texts {
		if bytes.Contains(text, []byte("ReplacementTransformer")) {
			return true
		}
	}
	return false
}
