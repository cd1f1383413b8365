package document

import (
	"math"
	"strconv"
	"strings"
	"unique"

	"go.yaml.in/yaml/v3"
)

// tagOf returns the tag of a node. Nodes that kustomize creates have none.
func tagOf(n *yaml.Node) string {
	if n.Tag == "" {
		return n.ShortTag()
	}
	return n.Tag
}

// key reads a key of a mapping. Words such as on and y are ordinary keys. Numbers are accepted
// if they are unambiguous.
func (d *decoder) key(n *yaml.Node) (string, bool) {
	n = dealias(n)
	if n.Kind != yaml.ScalarNode {
		d.errorf("a key of this mapping is not a word but a list or a mapping; if this is a template, it must be rendered first")
		return "", false
	}
	switch tagOf(n) {
	case "!!str", "!!timestamp":
	case "!!int":
		if v, err := strconv.ParseInt(n.Value, 10, 64); err != nil || strconv.FormatInt(v, 10) != n.Value {
			d.errorf("the key %q is a number; put it in quotes", n.Value)
			return "", false
		}
	default:
		d.errorf("the key %q is not a string; put it in quotes", n.Value)
		return "", false
	}
	if n.Value == "" {
		d.errorf("a key of this mapping is empty; give it a name")
		return "", false
	}
	return unique.Make(n.Value).Value(), true // all objects together have few keys
}

// booleans are the words that are booleans in YAML 1.1 and strings in YAML 1.2. kubectl and API
// servers use YAML 1.1.
var booleans = map[string]bool{
	"y": true, "Y": true, "yes": true, "Yes": true, "YES": true, "on": true, "On": true, "ON": true,
	"n": false, "N": false, "no": false, "No": false, "NO": false, "off": false, "Off": false, "OFF": false,
}

func (d *decoder) scalar(n *yaml.Node, text bool) any {
	if text {
		return d.text(n)
	}
	switch tagOf(n) {
	case "!!str", "!!timestamp", "!!merge":
		if n.Style == 0 && len(n.Value) <= 3 {
			if b, old := booleans[n.Value]; old {
				d.report.Warnf(d.at, "kubectl reads this word as %t, other tools as a string; write %t, or put the word in quotes", b, b)
				return b
			}
		}
		return n.Value
	case "!!null":
		return nil
	case "!!bool":
		return d.boolean(n.Value)
	case "!!int":
		return d.integer(n.Value)
	case "!!float":
		return d.float(n.Value)
	}
	if !strings.HasPrefix(n.Tag, "!!") { // the tag is not quoted: it may be a password that begins with an exclamation mark
		d.errorf("it begins with !, which makes it a YAML tag, and none is supported; write the plain value, in quotes if the ! is part of it")
		return nil
	}
	d.errorf("the YAML tag %s is not supported; write the plain value", n.Tag)
	return nil
}

// text reads the value of a label. A value that is not a string is used as written.
func (d *decoder) text(n *yaml.Node) any {
	_, old := booleans[n.Value]
	switch {
	case tagOf(n) == "!!null":
		return nil
	case tagOf(n) != "!!str" && tagOf(n) != "!!timestamp", old && n.Style == 0:
		d.report.Warnf(d.at, "label values are strings; write %q, with the quotes", n.Value)
	}
	return n.Value
}

func (d *decoder) boolean(s string) any {
	switch strings.ToLower(s) {
	case "true", "yes", "on", "y":
		return true
	case "false", "no", "off", "n":
		return false
	}
	d.errorf("is tagged !!bool, but is not a boolean; write true or false")
	return nil
}

func (d *decoder) integer(s string) any {
	if i, err := strconv.ParseInt(s, 10, 64); err == nil && (s[0] != '0' || len(s) == 1) {
		return i
	}
	// octal 0644, hexadecimal, signs and underscores are read as in kubectl
	plain := strings.ReplaceAll(s, "_", "")
	i, err := strconv.ParseInt(strings.TrimPrefix(plain, "+"), 0, 64)
	if err == nil {
		return i
	}
	if f, ferr := strconv.ParseFloat(plain, 64); ferr == nil && math.Abs(f) >= 1<<63 {
		d.errorf("this number is too large to be kept exactly; put it in quotes if it is meant as text")
		return nil
	}
	d.errorf("this number cannot be read; put it in quotes if it is meant as text")
	return nil
}

// float reads 2.0 and 1e2 as 2 and 100, as JSON does, so that servers accept them as integers.
func (d *decoder) float(s string) any {
	if strings.Trim(s, "+-_0123456789") == "" {
		return d.integer(s) // the type that the YAML library gives to numbers that are too large
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		d.errorf("JSON has no such number; put it in quotes if it is meant as text")
		return nil
	}
	if i, err := strconv.ParseInt(strconv.FormatFloat(f, 'f', -1, 64), 10, 64); err == nil {
		return i
	}
	return f
}

func (d *decoder) errorf(format string, args ...any) { d.report.Errorf(d.at, format, args...) }

func dealias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
