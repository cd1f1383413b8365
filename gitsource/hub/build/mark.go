package build

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
)

// With buildMetadata kustomize annotates objects with their origins. It then also records every transformation of every object, in an
// annotation that it decodes and encodes each time, which takes as long as the rest of a build. A build therefore gets manifests and
// generators with an annotation of its own, a mark, which says where the object is from and is removed from what is built. If marks
// might make a difference, the build is repeated without them, and only the origins are from the build with marks.

// markPrefix is the beginning of the annotation. A hash of everything that the build reads follows, so that nothing in it can have the
// annotation already.
const markPrefix = "gitfleet.dev/origin-"

// placesOf returns where the objects of a document can be marked. An object whose annotations come from an alias or a merge key has no
// such place.
func placesOf(r *document.Report) []place {
	if r.Root == nil {
		return nil
	}
	return placesIn(r.Root, r.LinesBefore, r.Origin.Document)
}

func placesIn(object *yaml.Node, before, number int) (all []place) {
	items := child(object, "items")
	if kind := child(object, "kind"); items != nil && items.Kind == yaml.SequenceNode && kind != nil && strings.HasSuffix(kind.Value, "List") {
		for _, item := range items.Content {
			all = append(all, placesIn(item, before, number)...)
		}
		return all
	}
	metadata := child(object, "metadata")
	if !isOwnMapping(metadata) {
		return nil
	}
	at, annotations := metadata, child(metadata, "annotations")
	if annotations != nil {
		if at = annotations; !isOwnMapping(annotations) {
			return nil
		}
	}
	return []place{{before + object.Line, number, before + at.Line, at.Column, annotations != nil, len(at.Content) == 0}}
}

// isOwnMapping reports whether a node is a mapping that is used once, and that has all its keys itself.
func isOwnMapping(n *yaml.Node) bool {
	if n == nil || n.Kind != yaml.MappingNode || n.Anchor != "" || n.Column == 0 {
		return false
	}
	for i := 0; i < len(n.Content); i += 2 {
		if key := n.Content[i]; key.Kind != yaml.ScalarNode || key.Tag == "!!merge" {
			return false
		}
	}
	return true
}

// markedTexts returns the texts of the files of the build, with marks in those that are resources.
func (b *builder) markedTexts() map[string][]byte {
	b.markKey = ""
	resources := map[string]bool{}
	for _, k := range b.parts {
		for _, f := range k.files {
			is, known := resources[f.path]
			resources[f.path] = f.resource && (is || !known) // a patch has no mark
		}
	}
	for name := range b.chartFiles {
		resources[name] = true
	}
	h := sha256.New()
	names := slices.Sorted(maps.Keys(b.texts))
	for _, name := range names {
		if bytes.Contains(b.texts[name], []byte("needs-hash")) {
			return b.texts // names have hashes of whole objects
		}
		fmt.Fprintf(h, "%q %d\n", name, len(b.texts[name]))
		h.Write(b.texts[name])
	}
	b.markKey = markPrefix + hex.EncodeToString(h.Sum(nil))[:16]
	texts := maps.Clone(b.texts)
	for _, name := range names {
		if resources[name] {
			texts[name] = b.markText(name)
		}
	}
	return texts
}

func (b *builder) newMark(m sourceMark) string {
	b.marks = append(b.marks, m)
	return strconv.Itoa(len(b.marks) - 1)
}

// markText returns the text of a file with marks in its objects.
func (b *builder) markText(name string) []byte {
	places, text := b.places[name], b.texts[name]
	lines := lineStarts(text)
	type insertion struct {
		at   int
		text string
	}
	var insertions []insertion
	for _, p := range places {
		at, indent, ok := p.find(text, lines)
		if !ok {
			continue
		}
		value := fmt.Sprintf("%q: %q", b.markKey, b.newMark(sourceMark{name, p.objectLine, p.document}))
		if !p.annotations {
			value = fmt.Sprintf("\"annotations\": {%s}", value)
		}
		switch {
		case indent >= 0:
			value = strings.Repeat(" ", indent) + value + "\n"
		case !p.empty:
			value += ", "
		}
		insertions = append(insertions, insertion{at, value})
	}
	if len(insertions) == 0 {
		return text
	}
	slices.SortStableFunc(insertions, func(x, y insertion) int { return x.at - y.at })
	var out bytes.Buffer
	done := 0
	for _, i := range insertions {
		out.Write(text[done:i.at])
		io.WriteString(&out, i.text)
		done = i.at
	}
	out.Write(text[done:])
	return out.Bytes()
}

// find returns the offset of the insertion, and the indentation of a line to insert; -1 if the mapping has braces. ok is false if nothing
// can be inserted.
func (p place) find(text []byte, lines []int) (at, indent int, ok bool) {
	if p.line < 1 || p.line > len(lines) {
		return 0, 0, false
	}
	start := lines[p.line-1]
	at = start
	for range p.column - 1 {
		_, size := utf8.DecodeRune(text[at:])
		at += size
	}
	switch {
	case at >= len(text):
		return 0, 0, false
	case text[at] == '{':
		return at + 1, -1, true
	case p.empty || len(bytes.Trim(text[start:at], " ")) > 0:
		return 0, 0, false
	}
	return start, at - start, true
}

// lineStarts returns the offsets at which the lines of a text begin; none if YAML has other lines than that.
func lineStarts(text []byte) []int {
	if bytes.ContainsAny(text, "\u0085\u2028\u2029\ufeff") || bytes.Count(text, []byte("\r")) != bytes.Count(text, []byte("\r\n")) {
		return nil
	}
	starts := []int{0}
	for i, c := range text {
		if c == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

// markGenerators returns a kustomization file with marks in its generators. One that is merged into another object has none, since the
// object is from the other one.
func (b *builder) markGenerators(k *kustomization, spec types.Kustomization) types.Kustomization {
	n := 0
	mark := func(g *types.GeneratorArgs) {
		position := k.generators[n]
		if n++; types.NewGenerationBehavior(g.Behavior) == types.BehaviorMerge {
			return
		}
		options := types.GeneratorOptions{}
		if g.Options != nil {
			options = *g.Options
		}
		options.Annotations = maps.Clone(options.Annotations)
		if options.Annotations == nil {
			options.Annotations = map[string]string{}
		}
		options.Annotations[b.markKey] = b.newMark(sourceMark{path: k.file, line: position.line})
		g.Options = &options
	}
	spec.ConfigMapGenerator, spec.SecretGenerator = slices.Clone(spec.ConfigMapGenerator), slices.Clone(spec.SecretGenerator)
	for i := range spec.ConfigMapGenerator {
		mark(&spec.ConfigMapGenerator[i].GeneratorArgs)
	}
	for i := range spec.SecretGenerator {
		mark(&spec.SecretGenerator[i].GeneratorArgs)
	}
	return spec
}

// annotationsPath matches the path of annotations in a replacement or a transformer, for which an object with a mark has annotations that
// are not there otherwise. For a JSON patch, whose paths begin with a slash, every object has annotations of kustomize's own.
var annotationsPath = regexp.MustCompile(`(^|[^/])metadata[./]annotations`)

// dependsOnMarks reports whether the build with marks may differ from the one without.
func (b *builder) dependsOnMarks() bool {
	if b.markKey == "" {
		return false
	}
	for _, text := range b.texts {
		if annotationsPath.Match(text) {
			return true
		}
	}
	return false
}

// recordOrigins records where the objects of a build are from.
func (b *builder) recordOrigins(built resmap.ResMap) {
	b.origins = nil
	if built == nil {
		return
	}
	for _, res := range built.Resources() {
		m, _ := b.markOf(res.GetAnnotations(), res.GetKind(), res.GetName())
		b.origins = append(b.origins, m)
	}
}

// markOf returns the mark of an object, by its annotations. Without one, which patches may remove, it is from the document with the
// nearest name.
func (b *builder) markOf(annotations map[string]string, kind, name string) (m sourceMark, ok bool) {
	if text, marked := annotations[b.markKey]; marked && b.markKey != "" {
		if i, err := strconv.Atoi(text); err == nil && i >= 0 && i < len(b.marks) {
			return b.marks[i], true
		}
	}
	best := ""
	consider := func(path string, positions []sourcePosition) {
		if p, found := nearest(positions, kind, name); found && strings.Contains(name, p.name) && (!ok || len(p.name) > len(best)) {
			m, best, ok = sourceMark{path, p.line, p.document}, p.name, true
		}
	}
	for _, k := range b.parts {
		for _, f := range k.files {
			if f.resource {
				consider(f.path, b.positions[f.path])
			}
		}
		consider(k.file, k.generators)
		for _, p := range k.pluginObjects {
			consider(p.path, []sourcePosition{p.sourcePosition})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.chartFiles)) {
		consider(name, b.positions[name])
	}
	return m, ok
}

// removeMarks removes the marks from an object, also from where replacements have copied them, and what is empty without them.
func removeMarks(value any, key string) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			removeMarks(item, key)
		}
	case map[string]any:
		delete(v, key)
		for name, child := range v {
			fields, isMap := child.(map[string]any)
			_, marked := fields[key]
			if removeMarks(child, key); isMap && marked && len(fields) == 0 {
				delete(v, name)
			}
		}
	}
}

// nearest finds the document from which an object was probably made. It is of the same kind,
// and of several it is the one with the longest name that is part of the object's name, since
// kustomize may have added a prefix or suffix. If no name matches, it is the only document of
// the kind.
func nearest(positions []sourcePosition, kind, name string) (best sourcePosition, found bool) {
	positions = slices.DeleteFunc(slices.Clone(positions), func(p sourcePosition) bool { return p.kind != kind })
	for _, p := range positions {
		if strings.Contains(name, p.name) && (!found || len(p.name) > len(best.name)) {
			best, found = p, true
		}
	}
	if !found && len(positions) == 1 {
		return positions[0], true
	}
	return best, found
}
