package settings

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	p := &configParser{file: name, lines: c.lines}
	if doc.Kind == yaml.DocumentNode {
		p.value("", doc.Content[0], reflect.ValueOf(c).Elem())
	}
	for key := range c.lines {
		if key == "source.signatures" || strings.HasPrefix(key, "source.signatures.") {
			c.Source.Signatures.present = true
		}
	}
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
	lines    map[string]int // lines of the keys in the file
	problems problem.List
}

func (p *configParser) problem(n *yaml.Node, key, message string) {
	p.problems = append(p.problems, problem.Problem{Origin: api.Origin{Path: p.file, Line: n.Line}, Field: key, Message: message})
}

// formsOfTypes describe the values of lists, mappings and their elements.
var formsOfTypes = map[reflect.Type]string{
	reflect.TypeFor[KindModes]():    "a mapping of KIND or GROUP/KIND to revert, propose or report",
	reflect.TypeFor[driftMode]():    "revert, propose or report",
	reflect.TypeFor[[]signedPath](): "a list of {path: PATH, signers: [SIGNER], namespaces: [NAME], kinds: [KIND], placements: [NAME], sharedBases: [DIRECTORY]}",
	reflect.TypeFor[[]hostAccess](): "a list of {host: HOST, username: NAME, passwordFile: FILE}, or with tokenFile, bearerFile or sshKeyFile, sshKnownHosts, caBundle and plainHTTP",
	reflect.TypeFor[[]gateServer](): "a list of {url: URL, bearerFile: FILE}, or with username and passwordFile, caBundle, certFile and keyFile",
	reflect.TypeFor[gateServer]():   "{url: URL, bearerFile: FILE}",
	reflect.TypeFor[hostAccess]():   "{host: HOST, username: NAME, passwordFile: FILE}",
	reflect.TypeFor[signedPath]():   "{path: PATH, signers: [SIGNER], namespaces: [NAME], kinds: [KIND], placements: [NAME], sharedBases: [DIRECTORY]}",
}

// value sets a field. A null value keeps the default.
func (p *configParser) value(key string, n *yaml.Node, to reflect.Value) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Tag == "!!null" {
		return
	}
	form, fits := "a single value", n.Kind == yaml.ScalarNode
	var err error
	switch field := to.Addr().Interface().(type) {
	case *string:
		*field = n.Value
	case *driftMode:
		*field = driftMode(n.Value)
	case *bool:
		form, fits = forms["bool"], n.Decode(field) == nil
	case *int, *int64:
		form, fits = forms["int"], n.Tag == "!!int" && n.Decode(field) == nil
	case *metav1.Duration:
		field.Duration, err = time.ParseDuration(n.Value)
		form, fits, err = forms["duration"], err == nil, nil
	case pflag.Value:
		if fits {
			err = field.Set(n.Value)
		}
	default:
		form, fits = p.collection(key, n, to)
	}
	if !fits {
		err = fmt.Errorf("must be %s, is %s", cmp.Or(formsOfTypes[to.Type()], form), describeNode(n))
	}
	if err != nil {
		p.problem(n, key, err.Error())
	}
}

// collection sets a section, a list or a mapping. fits is false if the node is not what form
// describes.
func (p *configParser) collection(key string, n *yaml.Node, to reflect.Value) (form string, fits bool) {
	switch to.Kind() {
	case reflect.Slice:
		if form, fits = "a list", n.Kind == yaml.SequenceNode; fits {
			to.Set(reflect.MakeSlice(to.Type(), len(n.Content), len(n.Content)))
			for i, item := range n.Content {
				p.value(fmt.Sprintf("%s[%d]", key, i), item, to.Index(i))
			}
		}
	case reflect.Map:
		if form, fits = "a mapping", n.Kind == yaml.MappingNode; fits {
			to.Set(reflect.MakeMap(to.Type()))
			p.mapping(key, n, to)
		}
	default:
		if form, fits = "a mapping of settings", n.Kind == yaml.MappingNode; fits {
			p.mapping(key, n, to)
		}
	}
	return form, fits
}

// mapping sets the fields of a section, or the elements of a map, from a mapping.
func (p *configParser) mapping(key string, n *yaml.Node, to reflect.Value) {
	for i := 0; i < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		below := strings.TrimPrefix(key+"."+name.Value, ".")
		if name.Tag == "!!merge" {
			p.problem(name, key, "merge keys (<<) are not supported; write the settings out")
			continue
		}
		if before, twice := p.lines[below]; twice {
			p.problem(name, below, fmt.Sprintf("is set twice; the first is in line %d", before))
			continue
		}
		p.lines[below] = name.Line
		if to.Kind() == reflect.Map {
			element := reflect.New(to.Type().Elem()).Elem()
			p.value(below, value, element)
			to.SetMapIndex(reflect.ValueOf(name.Value), element)
			continue
		}
		if field, ok := fieldOf(to, name.Value); ok {
			p.value(below, value, field)
		} else {
			p.problem(name, below, "unknown field"+settingMeant(below, append(settingKeys(), keysOf(key, to)...)))
		}
	}
}

// keysOf returns the keys of the fields of a section.
func keysOf(prefix string, section reflect.Value) []string {
	var keys []string
	for field := range section.Fields() {
		if name, ok := field.Tag.Lookup("key"); ok {
			keys = append(keys, strings.TrimPrefix(prefix+"."+name, "."))
		}
	}
	return keys
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
