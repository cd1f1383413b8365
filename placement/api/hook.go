package api

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// A Hook says when an object of a chart is applied: before the other objects of the chart on the cluster, or after them.
type Hook struct {
	PreInstall, PreUpgrade, PostInstall, PostUpgrade bool
	// Weight orders hooks that are for the same time, ascending.
	Weight int
}

// HookOf returns what the annotations of Helm say about an object of a chart; false if it is applied with the others.
func HookOf(object map[string]any) (Hook, bool) {
	all := HelmHooks(object)
	is := func(name string) bool { return slices.Contains(all, name) }
	h := Hook{PreInstall: is("pre-install"), PreUpgrade: is("pre-upgrade"), PostInstall: is("post-install"), PostUpgrade: is("post-upgrade")}
	h.Weight, _ = strconv.Atoi(helmAnnotation(object, "helm.sh/hook-weight")) // Helm ignores what is no number
	return h, h.Pre() || h.Post()
}

// HelmHooks are the hooks that an object of a chart is for, such as pre-install.
func HelmHooks(object map[string]any) []string {
	return strings.FieldsFunc(helmAnnotation(object, "helm.sh/hook"), func(c rune) bool { return c == ',' || unicode.IsSpace(c) })
}

func helmAnnotation(object map[string]any, name string) string {
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	text, _ := annotations[name].(string)
	return text
}

// Pre reports whether the object is applied before the others at any time.
func (h Hook) Pre() bool { return h.PreInstall || h.PreUpgrade }

// Post reports whether the object is applied after the others at any time.
func (h Hook) Post() bool { return h.PostInstall || h.PostUpgrade }

// Once reports whether the object is for the installation only, so that it is never applied again.
func (h Hook) Once() bool { return !h.PreUpgrade && !h.PostUpgrade }
