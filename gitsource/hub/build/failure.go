package build

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/schema"
	"github.com/gitfleet/gitfleet/placement/api"
)

// idText matches how kustomize writes the ID of an object. Its groups are the kind and the name, which may have dots.
const idText = `(\w+)\.[^/]*/(\S+?)\.(?:\[noNs\]|[^.\s":;']+)(?:[\s":;']|$)`

var (
	// inBase matches the beginning of a message about a base or a component, which has its directory. Of a component, the rest is quoted.
	inBase = regexp.MustCompile(`^accumulating (?:resources: accumulation err='accumulating resources from '[^']*': '[^']*' must resolve to a file'|components: accumulateDirectory): ("?)recursed accumulation of path '` + mount + `/([^']*)': `)
	// inFile matches a message about a file of the resources.
	inFile = regexp.MustCompile(`(?s)^accumulating resources: accumulation err='(?:accumulating|merging) resources from '([^']*)': (.*)': must build at directory: '[^']*': file is not directory$`)
)

// unreadSelector matches a message about a selector that is none.
var unreadSelector = regexp.MustCompile(`unable to parse requirement: |found '[^']*', expected`)

// A failureRule says what a message of kustomize is about: the first of some fields of the kustomization that has a text, which the
// message quotes. text returns what is wrong and how to correct it, by what the pattern has matched.
type failureRule struct {
	pattern *regexp.Regexp
	fields  []string
	text    func(b *builder, parts []*kustomization, found []string) string
}

// failureRules are for the mistakes that people make most often. The last group of a pattern is the text that is quoted.
var failureRules = []failureRule{
	{regexp.MustCompile(`may not add resource with an already registered id: ` + idText), nil, func(_ *builder, _ []*kustomization, found []string) string {
		return fmt.Sprintf("%s %s is among the resources more than once; list it once, or rename one of them", found[1], found[2])
	}},
	{regexp.MustCompile(`(?:no resource matches strategic merge patch "|failed to find unique target for patch )` + idText), []string{"patches", "patchesStrategicMerge"}, func(b *builder, parts []*kustomization, found []string) string {
		if slices.ContainsFunc(objectsOf(b, parts), func(p sourcePosition) bool { return p.kind == found[1] && p.name == found[2] }) {
			return fmt.Sprintf("the patch is for %s %s, but the one among the resources has another apiVersion or namespace, or an earlier patch deletes it; write its apiVersion and namespace in the patch", found[1], found[2])
		}
		return fmt.Sprintf("the patch is for %s %s, which is not among the resources; %s", found[1], found[2], suggestName(b, parts, found[1], found[2], "correct the name, or add it to them"))
	}},
	{regexp.MustCompile(`resource with name (\S+) does not match a config`), []string{"replicas"}, func(b *builder, parts []*kustomization, found []string) string {
		return fmt.Sprintf("no Deployment, StatefulSet, ReplicaSet or ReplicationController among the resources is named %s; %s", found[1], suggestName(b, parts, "Deployment", found[1], "correct the name"))
	}},
	{regexp.MustCompile(`Unexpected kind: (\S+)`), []string{"patches"}, func(_ *builder, _ []*kustomization, found []string) string {
		return fmt.Sprintf("%q is no operation of a JSON patch; %s", found[1], schema.SuggestKnown(found[1], []string{"add", "copy", "move", "remove", "replace", "test"}))
	}},
	{regexp.MustCompile(`(\w+) operation does not apply: doc is missing (?:path|key): "?([^\s":]+)`), []string{"patches", "patchesJson6902"}, missingField},
	{regexp.MustCompile(`error in (remove) for path: '([^']+)': Unable to remove nonexistent key`), []string{"patches", "patchesJson6902"}, missingField},
	{regexp.MustCompile(`wrong node kind: expected (\w+)Node but got (\w+)Node: node contents: (.+)`), []string{"patches", "patchesStrategicMerge"}, func(_ *builder, _ []*kustomization, found []string) string {
		return fmt.Sprintf("kustomize expects %s and finds %s: %s; correct the patch, or the object that it is for", nodeKinds[found[1]], nodeKinds[found[2]], found[3])
	}},
	{regexp.MustCompile(`var '\{(\S+) .* cannot be mapped to a field in the set of known resources`), []string{"vars"}, func(_ *builder, _ []*kustomization, found []string) string {
		return fmt.Sprintf("none of the resources has the kind, the name and the field that the variable %s stands for; correct its objref and fieldref", found[1])
	}},
	{regexp.MustCompile(`invalid literal source ([^\s,]+), expected key=value`), []string{"configMapGenerator", "secretGenerator"}, func(_ *builder, _ []*kustomization, found []string) string {
		return fmt.Sprintf("%s is no literal; write KEY=VALUE", found[1])
	}},
	{regexp.MustCompile(`unable to parse SM or JSON patch from \[patch: "([^"\\[][^"\\]*)`), []string{"patches"}, says("kustomize cannot read the patch; a strategic merge patch needs apiVersion, kind and metadata.name, also with a target, and a JSON patch is a list of operations")},
	{regexp.MustCompile(`must specify a target for JSON patch \[patch: "([^"\\]+)`), []string{"patches"}, says("a JSON patch needs a target; write the kind and the name of the object in target")},
	{regexp.MustCompile(`testing value (\S+) failed: test failed`), []string{"patches", "patchesJson6902"}, says("the target has another value in this field than the operation test wants, so that nothing of the patch is applied; correct the value, or remove the operation")},
	{regexp.MustCompile(`(?:configmap|secret) (\S+) illegally repeats the key \W([\w.-]+)`), []string{"configMapGenerator", "secretGenerator"}, func(_ *builder, _ []*kustomization, found []string) string {
		return fmt.Sprintf("the generator %s has the key %s more than once; remove all but one", found[1], found[2])
	}},
	{regexp.MustCompile(`namespace transformation produces ID conflict: .*?"kind":"(\w+)".*?"name":"([^"]+)"`), nil, func(_ *builder, _ []*kustomization, found []string) string {
		return fmt.Sprintf("in the namespace that is set for all objects, %s %s is there more than once; rename one of them, or list it once", found[1], found[2])
	}},
	{regexp.MustCompile(`merging from generator: id (\w+) (\S+) does not exist; cannot merge or replace`), []string{"configMapGenerator", "secretGenerator"}, func(b *builder, parts []*kustomization, found []string) string {
		return fmt.Sprintf("there is no %s %s to merge with or to replace; %s", found[1], found[2], suggestName(b, parts, found[1], found[2], "remove behavior, or correct the name"))
	}},
	{regexp.MustCompile(`merging from generator: id (\w+) (\S+) exists; `), []string{"configMapGenerator", "secretGenerator"}, func(_ *builder, _ []*kustomization, found []string) string {
		return fmt.Sprintf("there is a %s %s already; give the generator another name, or write behavior: merge or replace", found[1], found[2])
	}},
	{regexp.MustCompile(`fieldPath .(\S+). is missing for replacement source`), []string{"replacements"}, func(_ *builder, _ []*kustomization, found []string) string {
		return fmt.Sprintf("the source has no field %s; correct fieldPath", found[1])
	}},
	{regexp.MustCompile(`unable to find field "([^"]+)" in replacement target`), []string{"replacements"}, func(_ *builder, _ []*kustomization, found []string) string {
		return fmt.Sprintf("a target has no field %s; correct the path, or write options: {create: true}", found[1])
	}},
	{regexp.MustCompile(`multiple matches for selector `), nil, says("several objects match the source of a replacement; name one by its kind and its name")},
	{regexp.MustCompile(`nothing selected by ` + idText), []string{"replacements"}, func(b *builder, parts []*kustomization, found []string) string {
		return fmt.Sprintf("the source %s %s is not among the resources; %s", found[1], found[2], suggestName(b, parts, found[1], found[2], "correct it, or add it to them"))
	}},
}

// nodeKinds describe the kinds of YAML nodes.
var nodeKinds = map[string]string{"Mapping": "a mapping", "Sequence": "a list", "Scalar": "a single value"}

// missingField is the text of rules that match the operation of a JSON patch and its path.
func missingField(_ *builder, _ []*kustomization, found []string) string {
	return fmt.Sprintf("the target has no field %s, so that the operation %s cannot be applied; correct the path, or add what is missing first", found[2], found[1])
}

// says returns the text of a rule that is always the same.
func says(text string) func(*builder, []*kustomization, []string) string {
	return func(*builder, []*kustomization, []string) string { return text }
}

// suggestName suggests the name of an object of a kind.
func suggestName(b *builder, parts []*kustomization, kind, name, fix string) string {
	var names []string
	for _, p := range objectsOf(b, parts) {
		if p.kind == kind {
			names = append(names, p.name)
		}
	}
	if near := api.Closest(name, names); near != "" && near != name {
		return api.DidYouMean(near)
	}
	return fix
}

// failureOf returns the problem of a build that has failed, at the position that the message of kustomize is about as far as that is
// known.
func failureOf(b *builder, message string) problem.Problem {
	k := b.root
	for found := inBase.FindStringSubmatch(message); found != nil; found = inBase.FindStringSubmatch(message) {
		i := slices.IndexFunc(b.parts, func(k *kustomization) bool { return k.dir == found[2] })
		if i < 0 {
			break
		}
		k, message = b.parts[i], message[len(found[0]):]
		if text, err := strconv.Unquote(`"` + message); found[1] != "" && err == nil {
			message = text
		}
	}
	p := problem.Problem{Origin: api.Origin{Path: k.file}, Severity: problem.Error}
	if k != b.root {
		p.Kustomization = b.File
	}
	if k.generated {
		p.Path = k.dir
	}
	if found := inFile.FindStringSubmatch(message); found != nil && found[2] != "missing Resource metadata" {
		file := path.Join(k.dir, found[1])
		i := slices.IndexFunc(b.positions[file], func(p sourcePosition) bool { return p.name == "" })
		if i >= 0 && strings.HasPrefix(found[2], "missing metadata.name in object") {
			p.Origin = api.Origin{Path: file, Line: b.positions[file][i].line, Kustomization: b.File}
			p.Field, p.Message = "metadata.name", "missing; give the object a name"
			p.Origin = b.localOrigin(p.Origin)
			return p
		}
		if m, known := k.mentionOf(file); known {
			p.Line, p.Field = m.line, m.field
		}
		message = found[2]
	}
	p.Message = "kustomize: " + b.clean(message)
	parts := b.graph.withBases(k.dir)
	if field, line := unreadableJSON(k); field != "" && strings.HasPrefix(message, "trouble configuring builtin PatchTransformer") {
		p.Line, p.Field, p.Message = line, field, "a patch that begins with [ is read as JSON, and this is none; write its keys and texts in quotation marks, or the operations as a YAML list with -"
	}
	if len(k.selectorFaults) > 0 && unreadSelector.MatchString(message) {
		m := k.selectorFaults[0]
		p.Line, p.Field, p.Message = m.line, m.field, m.value
	}
	for _, rule := range failureRules {
		found := rule.pattern.FindStringSubmatch(b.clean(message))
		if found == nil {
			continue
		}
		p.Message = rule.text(b, parts, found)
		if file, field, line := locate(b, k, rule.fields, found[len(found)-1]); line > 0 {
			p.Path, p.Field, p.Line = file, field, line
		}
		break
	}
	p.Origin = b.localOrigin(p.Origin)
	return p
}

// mentionOf returns the reference to a file.
func (k *kustomization) mentionOf(file string) (m mention, known bool) {
	i := slices.IndexFunc(k.mentions, func(m mention) bool { return path.Join(k.dir, m.value) == file })
	if i < 0 {
		return mention{}, false
	}
	return k.mentions[i], true
}

// unreadableJSON returns the position of the first patch that looks like JSON and is none.
func unreadableJSON(k *kustomization) (field string, line int) {
	for i, patch := range k.spec.Patches {
		if strings.HasPrefix(patch.Patch, "[") && !json.Valid([]byte(patch.Patch)) {
			return strings.TrimSuffix(k.targets[i].field, ".target") + ".patch", k.targets[i].line
		}
	}
	return "", 0
}

// locate returns the position of the first text in some fields of a kustomization, or in the files that they refer to, that is or has
// another one. The line is 0 if there is none.
func locate(b *builder, k *kustomization, fields []string, text string) (file, field string, line int) {
	var doc yaml.Node
	if k.generated || yaml.Unmarshal(b.texts[k.file], &doc) != nil || len(doc.Content) == 0 {
		return "", "", 0
	}
	for _, name := range fields {
		list := child(doc.Content[0], name)
		if list == nil {
			continue
		}
		for _, exact := range []bool{true, false} {
			for i, entry := range list.Content {
				visitScalars(entry, func(n *yaml.Node) {
					at := indexOfPath(n.Value, text)
					if line > 0 || at < 0 || exact && n.Value != text {
						return
					}
					file, field, line = k.file, fmt.Sprintf("%s[%d]", name, i), n.Line+strings.Count(n.Value[:at], "\n")
					if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
						line++
					}
				})
			}
		}
		for _, entry := range list.Content {
			visitScalars(entry, func(n *yaml.Node) {
				other := path.Join(k.dir, n.Value)
				at := indexOfPath(string(b.texts[other]), text)
				if line == 0 && at >= 0 && strings.HasPrefix(name, "patches") {
					file, field, line = other, "", 1+strings.Count(string(b.texts[other][:at]), "\n")
				}
			})
		}
	}
	return file, field, line
}

// pathCharacter matches the beginning of a text that continues a path or a name.
var pathCharacter = regexp.MustCompile(`^[\w/~.-]`)

// indexOfPath returns the first index of a path or a name in a text in which it is not just the beginning of another one; -1 if there is
// none.
func indexOfPath(text, part string) int {
	for at := 0; ; at++ {
		i := strings.Index(text[at:], part)
		if i < 0 {
			return -1
		}
		if at += i; !pathCharacter.MatchString(text[at+len(part):]) {
			return at
		}
	}
}
