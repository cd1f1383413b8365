package work

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/variable"
)

// WithVariables has the variables in objects replaced that ask for it, or in all objects, and returns the renderer. The variables
// are those of the commit.
func (r *Renderer) WithVariables(vars *api.Variables, all bool) *Renderer {
	if vars == nil {
		vars = &api.Variables{}
	}
	s := &substitution{all: all, vars: vars, used: map[string]variable.Variable{}}
	asked := false
	for _, o := range r.selected {
		asked = asked || all || asks(o.Content) || o.Overlay != nil
	}
	manifests := r.whole.base.Manifests
	if !asked && !slices.ContainsFunc(manifests, func(m *Manifest) bool { return asks(m.Object.Content) }) {
		return r
	}
	other := false
	for _, m := range everyManifest(r) {
		if s.wants(m) {
			other = s.collect(m.Object.Content.Object) || other
		}
	}
	if len(s.used) == 0 && !other {
		return r
	}
	keys := overlayLabels(r.overlays)
	for _, v := range s.used {
		if v.Of == variable.Labels {
			keys = append(keys, v.Key)
		}
	}
	s.clusterVars = variable.NewValues(vars.Vars)
	keys = append(keys, s.clusterVars.LabelKeys()...)
	r.substitution = s
	r.labelKeys = labelKeys(r.whole.candidates, keys)
	return r
}

// SameVariables reports whether the content is the same with the variables of another commit: those that it has stand for the same
// on each cluster.
func (r *Renderer) SameVariables(vars *api.Variables) bool {
	s := r.substitution
	if s == nil || s.vars.Equal(vars) {
		return true
	}
	return vars != nil && s.values(s.vars) == s.values(vars)
}

// everyManifest returns the manifests that any cluster may get before overrides. An object that several directories of an
// overlay build differently occurs several times.
func everyManifest(r *Renderer) []*Manifest {
	all := slices.Clone(r.whole.base.Manifests)
	for _, o := range r.overlays {
		for _, dir := range slices.Sorted(maps.Keys(o.Overlay.Builds)) {
			for _, object := range o.Overlay.Builds[dir].Objects {
				all = append(all, &Manifest{Object: object})
			}
		}
	}
	return all
}

func asks(o *unstructured.Unstructured) bool {
	return o.GetAnnotations()[api.SubstituteAnnotation] == api.SubstituteEnabled
}

// declines reports whether an object says that what looks like a variable is text.
func declines(o *unstructured.Unstructured) bool {
	return o.GetAnnotations()[api.SubstituteAnnotation] == api.SubstituteDisabled
}

// wants reports whether variables of a manifest are replaced. One with encrypted values has to ask itself, since such a value may
// look like a variable. One in which an overlay has replaced variables already is left alone.
func (s *substitution) wants(m *Manifest) bool {
	return !m.Substituted && (s.all && m.HashKey == nil && !declines(m.Object.Content) || asks(m.Object.Content))
}

// collect adds the variables of a value. It reports whether one is malformed or escaped, which are replaced as well.
func (s *substitution) collect(v any) (other bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, field := range v {
			other = s.collect(key) || other
			other = s.collect(field) || other
		}
	case []any:
		for _, item := range v {
			other = s.collect(item) || other
		}
	case string:
		if !variable.In(v) {
			return false
		}
		_, found, _ := variable.Split(v)
		for _, one := range found {
			s.used[one.Text] = one
		}
		return len(found) == 0 // an error returns none
	}
	return other
}

// cluster returns the values for a cluster.
func (s *substitution) cluster(c placement.Cluster) variable.Cluster {
	return variable.Cluster{Name: c.Name, Labels: c.Labels, Properties: s.vars.Properties[c.Name], Vars: s.clusterVars.For(c.Name, c.Labels)}
}

// key identifies the values for a cluster: clusters with the same ones have the same content.
func (s *substitution) key(c placement.Cluster) string {
	if s == nil {
		return ""
	}
	var key []byte
	values := s.cluster(c)
	for _, text := range slices.Sorted(maps.Keys(s.used)) {
		value, err := s.used[text].Value(values)
		key = fmt.Appendf(key, "%q %v\x00", value, variable.WithoutCluster(err))
	}
	return string(key)
}

// hash returns the hash of a content together with what variables stand for.
func (s *substitution) hash(content string) string {
	if s == nil {
		return content
	}
	h := sha256.New()
	writeField(h, content)
	writeField(h, s.values(s.vars))
	return hex.EncodeToString(h.Sum(nil))
}

// values returns the hash of what the variables in use stand for.
func (s *substitution) values(vars *api.Variables) string {
	h := sha256.New()
	for _, text := range slices.Sorted(maps.Keys(s.used)) {
		writeField(h, text)
		writeValues(h, vars, s.used[text])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// writeValues writes all values that a variable may have on any cluster, except labels and names, by which the renderer tells
// clusters apart in any case. Other variables do not count: they change nothing.
func writeValues(w hash.Hash, vars *api.Variables, v variable.Variable) {
	write := func(where string, values map[string]string) {
		if value, is := values[v.Key]; is {
			writeField(w, where)
			writeField(w, value)
		}
	}
	switch v.Of {
	case variable.Properties:
		for _, cluster := range slices.Sorted(maps.Keys(vars.Properties)) {
			write(cluster, vars.Properties[cluster])
		}
	case variable.Vars:
		for _, set := range vars.Vars {
			write("", set.Spec.Vars)
			for _, rule := range set.Spec.Clusters {
				write(fmt.Sprint(rule.Names, metav1.FormatLabelSelector(rule.LabelSelector)), rule.Vars)
			}
		}
	}
}

// apply replaces the variables in a variant, which is that of a cluster.
func (s *substitution) apply(v *variant, c placement.Cluster) {
	if s == nil || v.err != nil {
		return
	}
	values := s.cluster(c)
	var problems []error
	for i, m := range v.base.Manifests {
		if !s.wants(m) {
			continue
		}
		changed, errs := s.manifest(m, values)
		if errs != nil {
			for _, err := range errs {
				problems = append(problems, fmt.Errorf("%s: %s: %w", m.Origin, m.ID, err))
			}
			continue
		}
		v.base.Manifests[i] = changed
	}
	if problems != nil {
		v.err = &EnvelopeError{Problems: problems, Overlays: true}
		return
	}
	v.base.Hash = hashOf(v.base.Manifests, v.base.Refused)
}

// manifest returns a manifest with the values for a cluster; the same one if it has no variables.
func (s *substitution) manifest(m *Manifest, values variable.Cluster) (*Manifest, []error) {
	r := &replacement{values: values, numbers: m.Numbers, room: variable.MostGrowth}
	content, _ := variable.Copy(m.Object.Content.Object, r).(map[string]any)
	if m.HashKey != nil && (r.errs != nil || r.changed) { // neither a value nor the path to one may get into a message or past a mask
		return nil, []error{errors.New("variables are not replaced in an object with encrypted values; take them out, or move them to an object without such values")}
	}
	if r.room < 0 {
		return nil, []error{variable.ErrTooLarge}
	}
	if r.errs != nil {
		return nil, r.errs
	}
	if !r.changed {
		return m, nil
	}
	u := &unstructured.Unstructured{Object: content}
	if err := checkIdentity(m.Object.Content, u); err != nil {
		return nil, []error{errors.New("variables cannot be in apiVersion, kind, metadata.name and metadata.namespace, by which placements select objects")}
	}
	if err := checkTextMaps(u); err != nil {
		return nil, []error{err}
	}
	hash, err := hashObject(u, m.HashKey)
	if err != nil {
		return nil, []error{err}
	}
	object := *m.Object
	object.Content, object.Hash = u, hash
	return &Manifest{Object: &object, Envelope: m.Envelope, Encrypted: object.Ciphertext()}, nil
}

// A replacement copies a value with the values of variables. Its errors do not name the cluster: others with the same values have the
// same ones.
type replacement struct {
	values  variable.Cluster
	numbers []api.NumberField
	changed bool
	errs    []error
	// room is how much larger the object may still become.
	room int
}

// maxErrors limits the errors of one object.
const maxErrors = 20

// Key returns the key with the values of its variables.
func (r *replacement) Key(key string, at []string) string { return r.text(key, at) }

// SameKeys records that variables have made keys the same.
func (r *replacement) SameKeys(key string, at []string) {
	r.fail(at, "two keys are %q once their variables are replaced; rename one of them, or change the value of its variable", key)
}

// Text returns the text with the values of its variables, as a number where the field needs one.
func (r *replacement) Text(v string, at []string) any {
	text := r.text(v, at)
	i := slices.IndexFunc(r.numbers, func(n api.NumberField) bool { return slices.Equal(n.Path, at) })
	if text == v || i < 0 {
		return text
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil && r.numbers[i].OrText {
		return text
	}
	if err != nil {
		r.fail(at, "must be a whole number, and %.100s is %.100q; change the value of the variable", v, text)
	}
	return n
}

func (r *replacement) text(text string, at []string) string {
	if !variable.In(text) {
		return text
	}
	texts, variables, err := variable.Split(text)
	if err != nil {
		r.fail(at, "%w", err)
		return text
	}
	var out strings.Builder
	out.WriteString(texts[0])
	for i, v := range variables {
		value, err := v.Value(r.values)
		if err != nil {
			r.fail(at, "%w", variable.WithoutCluster(err))
		}
		if r.room -= len(value); r.room < 0 {
			return text
		}
		out.WriteString(value)
		out.WriteString(texts[i+1])
	}
	r.changed = r.changed || out.String() != text
	return out.String()
}

func (r *replacement) fail(at []string, format string, args ...any) {
	if len(r.errs) == maxErrors {
		return
	}
	r.errs = append(r.errs, fmt.Errorf("%s: %w", strings.Join(at, "."), fmt.Errorf(format, args...)))
}
