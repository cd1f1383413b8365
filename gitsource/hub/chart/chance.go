package chart

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"time"
	_ "time/tzdata" // so that time zones are known on each machine

	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"
)

// chance replaces the template functions whose results differ between renderings: random values, keys and the time. Each call
// returns one of two fixed results. If the output is the same with both, it does not depend on the call; otherwise the chart is
// refused.
type chance struct {
	*budget
	// calls are the names of the functions that were called.
	calls []string
	// other says which calls have the other result.
	other func(call int) bool
	// fail is the call that fails; nil for none.
	fail *failure
}

// errChance is the error of the call that makes output differ.
type errChance struct{ function, object string }

func (e errChance) Error() string {
	return fmt.Sprintf("%s has another result each time, so that %s would never be as Git says; set the value that the chart makes up otherwise, refer to a Secret that exists "+
		"(many charts have existingSecret), or commit the object itself", e.function, e.object)
}

// A failure is the call that fails, and the object that differs because of it.
type failure struct {
	call   int
	object string
}

// draw records a call and reports which result it has.
func (c *chance) draw(function string) (other bool, err error) {
	call := len(c.calls)
	c.calls = append(c.calls, function)
	if c.fail != nil && call == c.fail.call {
		return false, errChance{function, c.fail.object}
	}
	return c.other(call), c.step(1)
}

var documentStart = regexp.MustCompile(`(?m)^---(?:[ \t].*)?$`)

// equivalent reports whether two outputs mean the same objects.
func (in *Inputs) equivalent(x, y map[string][]byte) bool {
	for name, text := range x {
		if !strings.HasSuffix(name, notes) && !bytes.Equal(text, y[name]) && in.placed(text) != in.placed(y[name]) {
			return false
		}
	}
	return true
}

// placed returns the documents of an output without what is left out.
func (in *Inputs) placed(text []byte) string {
	return strings.Join(in.placedDocuments(text), "---\n")
}

func (in *Inputs) placedDocuments(text []byte) []string {
	return slices.DeleteFunc(documentStart.Split(string(documents(text)), -1), func(document string) bool {
		var object map[string]any
		return in.LeftOut != nil && strings.Contains(document, "helm.sh/hook") && yaml.Unmarshal([]byte(document), &object) == nil && in.LeftOut(object)
	})
}

// A difference is an object that differs between two outputs, and the template that has it.
type difference struct {
	template, kind, name string
	// fields are those that differ, without their values.
	fields []string
}

// difference returns the first object that differs between two outputs, or rather the first Secret: others often have its hash. It is
// nil if no object with one name differs.
func (in *Inputs) difference(x, y map[string][]byte) (found *difference) {
	for _, template := range slices.Sorted(maps.Keys(x)) {
		if strings.HasSuffix(template, notes) || bytes.Equal(x[template], y[template]) {
			continue
		}
		first, second := in.placedDocuments(x[template]), in.placedDocuments(y[template])
		for i := range min(len(first), len(second)) {
			var a, b map[string]any
			if first[i] == second[i] || yaml.Unmarshal([]byte(first[i]), &a) != nil || yaml.Unmarshal([]byte(second[i]), &b) != nil {
				continue
			}
			d := &difference{template: template, fields: differing(a, b, "")}
			d.kind, _ = a["kind"].(string)
			metadata, _ := a["metadata"].(map[string]any)
			d.name, _ = metadata["name"].(string)
			if d.kind == "" || d.name == "" || len(d.fields) == 0 || slices.Contains(d.fields, "metadata.name") {
				continue
			}
			if d.kind == "Secret" {
				return d
			}
			found = cmp.Or(found, d)
		}
	}
	return found
}

// maxFields limits the fields of an object that a message names.
const maxFields = 3

// differing returns the paths of fields that differ, at most maxFields.
func differing(a, b any, at string) []string {
	x, isMap := a.(map[string]any)
	y, areMaps := b.(map[string]any)
	if !isMap || !areMaps {
		if reflect.DeepEqual(a, b) {
			return nil
		}
		return []string{at}
	}
	var all []string
	for _, key := range slices.Sorted(maps.Keys(x)) {
		if found := differing(x[key], y[key], strings.TrimPrefix(at+"."+key, ".")); len(all) < maxFields {
			all = append(all, found...)
		}
	}
	return all[:min(len(all), maxFields)]
}

var moments = map[bool]time.Time{
	false: time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC),
	true:  time.Date(2034, 11, 12, 13, 14, 15, 0, time.UTC),
}

// A certificate has the fields that those of sprig have.
type certificate struct{ Cert, Key string }

// functions are those whose result differs.
func (c *chance) functions() template.FuncMap {
	one := func(name string, results map[bool]string) func(...any) (string, error) {
		return func(...any) (string, error) {
			other, err := c.draw(name)
			return results[other], err
		}
	}
	letters := func(name, first, second string) func(int) (string, error) {
		return func(n int) (string, error) {
			if err := c.make(int64(max(n, 0))); err != nil {
				return "", err
			}
			letter := first
			other, err := c.draw(name)
			if other {
				letter = second
			}
			return strings.Repeat(letter, max(n, 0)), err
		}
	}
	cert := func(name string) func(...any) (certificate, error) {
		return func(...any) (certificate, error) {
			other, err := c.draw(name)
			return certificate{fmt.Sprint("certificate ", other), fmt.Sprint("key ", other)}, err
		}
	}
	all := template.FuncMap{
		"now": func() (time.Time, error) { other, err := c.draw("now"); return moments[other], err },
		"randInt": func(least, end int) (int, error) {
			other, err := c.draw("randInt")
			if other {
				return end - 1, err
			}
			return least, err
		},
		"shuffle": func(text string) (string, error) {
			other, err := c.draw("shuffle")
			if other {
				runes := []rune(text)
				for i := range len(runes) / 2 {
					runes[i], runes[len(runes)-1-i] = runes[len(runes)-1-i], runes[i]
				}
				text = string(runes)
			}
			return text, err
		},
		"ago":           one("ago", map[bool]string{false: "1h0m0s", true: "2h0m0s"}),
		"uuidv4":        one("uuidv4", map[bool]string{false: "6c7d4a4f-3a0c-4a3e-9a55-0d1c7c1d6a01", true: "f0b6e2d8-91c4-4f27-8b0e-52a7e9c3d402"}),
		"randAlphaNum":  letters("randAlphaNum", "a", "b"),
		"randAlpha":     letters("randAlpha", "a", "b"),
		"randAscii":     letters("randAscii", "a", "b"),
		"randNumeric":   letters("randNumeric", "1", "2"),
		"randBytes":     letters("randBytes", "a", "b"),
		"durationRound": c.durationRound,
	}
	for name := range strings.FieldsSeq("bcrypt htpasswd encryptAES genPrivateKey") {
		all[name] = one(name, map[bool]string{false: name + " 1", true: name + " 2"})
	}
	for name := range strings.FieldsSeq("genCA genCAWithKey genSelfSignedCert genSelfSignedCertWithKey genSignedCert genSignedCertWithKey") {
		all[name] = cert(name)
	}
	c.addDates(all)
	return all
}

// addDates adds the functions that take the time of the call if they get no other, and the time zone of the machine.
func (c *chance) addDates(all template.FuncMap) {
	format := sprig.TxtFuncMap()["dateInZone"].(func(string, any, string) string)
	dateInZone := func(name string) func(string, any, string) (string, error) {
		return func(layout string, date any, zone string) (string, error) {
			if zone == "Local" {
				zone = "UTC"
			}
			switch date.(type) {
			case time.Time, *time.Time, int64, int, int32:
				return format(layout, date, zone), nil
			}
			other, err := c.draw(name)
			return format(layout, moments[other], zone), err
		}
	}
	all["date"] = func(layout string, date any) (string, error) { return dateInZone("date")(layout, date, "UTC") }
	all["htmlDate"] = func(date any) (string, error) { return dateInZone("htmlDate")("2006-01-02", date, "UTC") }
	all["dateInZone"] = dateInZone("dateInZone")
	all["date_in_zone"] = all["dateInZone"]
	all["htmlDateInZone"] = func(date any, zone string) (string, error) {
		return dateInZone("htmlDateInZone")("2006-01-02", date, zone)
	}
}

// durationRound is that of sprig, for which a time means the duration since then.
func (c *chance) durationRound(d any) (string, error) {
	if _, isTime := d.(time.Time); isTime {
		other, err := c.draw("durationRound")
		return map[bool]string{false: "1h", true: "2h"}[other], err
	}
	return sprig.TxtFuncMap()["durationRound"].(func(any) string)(d), nil
}
