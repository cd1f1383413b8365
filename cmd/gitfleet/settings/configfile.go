package settings

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
)

// parse applies a configuration file. It reports all problems of the file at once, each with
// its line and field.
func (c *Config) parse(name string, raw []byte) error {
	var doc yaml.Node
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return syntaxError(name, err)
	}
	c.file, c.lines = name, map[string]int{}
	p := &configParser{file: name, values: c.values(), fields: map[string]any{}, lines: c.lines}
	for _, s := range c.settings() {
		p.fields[s.key] = s.value
	}
	if doc.Kind == yaml.DocumentNode {
		p.mapping("", resolveAlias(doc.Content[0]))
	}
	_, c.Source.Signatures.present = c.lines["source.signatures"]
	return p.problems.Err()
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// syntaxError is the error of a file that is not YAML, with its line in front.
func syntaxError(name string, err error) error {
	at := yamlLine.FindStringSubmatch(err.Error())
	if at == nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	line, _ := strconv.Atoi(at[1]) // 0 if the line is not known
	return problem.Problem{Origin: api.Origin{Path: name, Line: line}, Message: "not valid YAML: " + strings.TrimPrefix(err.Error(), at[0])}
}

// A configParser sets fields from the nodes of a file.
type configParser struct {
	file     string
	values   *pflag.FlagSet // by key
	fields   map[string]any // pointers to the fields, by key
	lines    map[string]int // lines of the keys in the file
	problems problem.List
}

func (p *configParser) problem(n *yaml.Node, key, message string) {
	p.problems = append(p.problems, problem.Problem{Origin: api.Origin{Path: p.file, Line: n.Line}, Field: key, Message: message})
}

// mapping sets the settings below a prefix; the prefix is empty for the whole
// file.
func (p *configParser) mapping(prefix string, n *yaml.Node) {
	if isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		p.problem(n, strings.TrimSuffix(prefix, "."), "must be a mapping of settings, is "+describeNode(n))
		return
	}
	for i := 0; i < len(n.Content); i += 2 {
		name, value := n.Content[i], resolveAlias(n.Content[i+1])
		key := prefix + name.Value
		if name.Tag == "!!merge" {
			p.problem(name, strings.TrimSuffix(prefix, "."), "merge keys (<<) are not supported; write the settings out")
			continue
		}
		if before, twice := p.lines[key]; twice {
			p.problem(name, key, fmt.Sprintf("is set twice; the first is in line %d", before))
			continue
		}
		p.lines[key] = name.Line
		switch {
		case p.values.Lookup(key) != nil:
			if err := p.set(key, value); err != nil {
				p.problem(value, key, err.Error())
			}
		case p.isSection(key):
			p.mapping(key+".", value)
		default:
			p.problem(name, key, "unknown field"+settingMeant(key))
		}
	}
}

func (p *configParser) isSection(key string) bool {
	for known := range p.fields {
		if strings.HasPrefix(known, key+".") {
			return true
		}
	}
	return false
}

// set sets one setting. A null value keeps the default.
func (p *configParser) set(key string, n *yaml.Node) error {
	if isNull(n) {
		return nil
	}
	switch field := p.fields[key].(type) {
	case *[]string:
		texts, err := textsOf(n)
		*field = texts
		return err
	case *signedPaths:
		paths, err := pathsOf(n)
		*field = paths
		return err
	case *KindModes:
		return p.kindModes(key, field, n)
	case *bool:
		return expect(n, forms["bool"], n.Decode(field))
	case *int, *int64:
		if n.Tag != "!!int" {
			return expect(n, forms["int"], errNotScalar)
		}
	}
	if n.Kind != yaml.ScalarNode {
		return expect(n, "a single value", errNotScalar)
	}
	return setValue(p.values.Lookup(key).Value, n.Value)
}

// forms describe the values of the types of pflag.
var forms = map[string]string{
	"bool": "true or false", "int": "a whole number", "int64": "a whole number", "duration": "a duration such as 30s, 10m or 1h",
}

// setValue sets a value. The error says what the value must be.
func setValue(v pflag.Value, text string) error {
	err := v.Set(text)
	if form := forms[v.Type()]; err != nil && form != "" {
		return fmt.Errorf("must be %s, is %q", form, text)
	}
	return err
}

var errNotScalar = errors.New("not a single value")

// expect says what a value must be, if err is not nil.
func expect(n *yaml.Node, what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("must be %s, is %s", what, describeNode(n))
}

func textsOf(n *yaml.Node) ([]string, error) {
	var texts []string
	if n.Kind != yaml.SequenceNode {
		return nil, expect(n, "a list", errNotScalar)
	}
	for _, item := range n.Content {
		if item = resolveAlias(item); item.Kind != yaml.ScalarNode {
			return nil, expect(item, "a list of text", errNotScalar)
		}
		texts = append(texts, item.Value)
	}
	return texts, nil
}

// pathsOf reads a list of {path, signers}.
func pathsOf(n *yaml.Node) (signedPaths, error) {
	const form = "a list of {path: PATH, signers: [SIGNER]}"
	if n.Kind != yaml.SequenceNode {
		return nil, expect(n, form, errNotScalar)
	}
	var all signedPaths
	for i, item := range n.Content {
		if item = resolveAlias(item); item.Kind != yaml.MappingNode {
			return nil, expect(item, form, errNotScalar)
		}
		var path signedPath
		for j := 0; j < len(item.Content); j += 2 {
			name, value := item.Content[j], resolveAlias(item.Content[j+1])
			var err error
			switch name.Value {
			case "path":
				if path.Path = value.Value; value.Kind != yaml.ScalarNode {
					err = expect(value, "text", errNotScalar)
				}
			case "signers":
				path.Signers, err = textsOf(value)
			default:
				err = errors.New("unknown field; use path and signers")
			}
			if err != nil {
				return nil, fmt.Errorf("item %d, %s: %w", i, name.Value, err)
			}
		}
		all = append(all, path)
	}
	return all, nil
}

// kindModes reads a mapping of kinds to drift modes, and records the line of each kind.
func (p *configParser) kindModes(key string, to *KindModes, n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return expect(n, "a mapping of KIND or GROUP/KIND to revert, propose or report", errNotScalar)
	}
	*to = KindModes{}
	for i := 0; i < len(n.Content); i += 2 {
		kind, mode := n.Content[i], resolveAlias(n.Content[i+1])
		if mode.Kind != yaml.ScalarNode {
			return fmt.Errorf("%s: %w", kind.Value, expect(mode, "revert, propose or report", errNotScalar))
		}
		if _, twice := (*to)[kind.Value]; twice {
			return fmt.Errorf("%s is set twice", kind.Value)
		}
		(*to)[kind.Value] = mode.Value
		p.lines[key+"."+kind.Value] = kind.Line
	}
	return nil
}

// describeNode describes a value as its author would.
func describeNode(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	return strconv.Quote(n.Value)
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func resolveAlias(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// settingMeant returns the end of a message about an unknown key: the key that the user
// probably meant, which is the same one in other case, one with the same name elsewhere in the
// file, or one with a similar spelling.
func settingMeant(key string) string {
	known := settingKeys()
	last := key[strings.LastIndex(key, ".")+1:]
	if i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, key) }); i >= 0 {
		return fmt.Sprintf("; did you mean %s?", known[i])
	}
	for _, k := range known {
		if strings.EqualFold(k[strings.LastIndex(k, ".")+1:], last) {
			return fmt.Sprintf("; did you mean %s?", k)
		}
	}
	if near := api.Closest(key, known); near != "" {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	return ""
}

// settingKeys returns the keys of all settings, in the order of the documentation, and of their
// sections.
func settingKeys() []string {
	c := Default()
	var keys []string
	for _, s := range c.settings() {
		parts := strings.Split(s.key, ".")
		for i := range parts {
			if key := strings.Join(parts[:i+1], "."); !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}
