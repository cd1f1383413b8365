package chart

import (
	"strings"
	"testing"
)

// The message about a random value names the Secret that has it, rather than what has a hash of it, and never the value.
func TestChanceNamesTheObject(t *testing.T) {
	c := readChart(t, map[string]string{
		"templates/_password.tpl": `{{- define "password" }}{{ if not .Values.made }}{{ $_ := set .Values "made" (randAlphaNum 8) }}{{ end }}{{ .Values.made }}{{ end }}`,
		"templates/pod.yaml":      "kind: Deployment\nmetadata: {name: db, annotations: {checksum/secret: {{ include \"password\" . | sha256sum }}}}\n",
		"templates/secret.yaml":   "kind: Secret\nmetadata: {name: db}\ndata: {user: {{ \"a\" | b64enc }}, password: {{ include \"password\" . | b64enc }}}\n",
	})
	_, err := c.Render(usual)
	const want = "so that Secret db (web/templates/secret.yaml: data.password) would never be as Git says"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
