package api

import (
	"encoding/base64"
	"strings"
	"testing"
)

// Encrypted content is recognised wherever a cluster needs the plain one, and nothing else is
// taken for it.
func TestCiphertextIn(t *testing.T) {
	const value = "ENC[AES256_GCM,data:9mF0Zg==,iv:aXY=,tag:dGFn,type:str]"
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	secret := func(field, value string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "db"}, field: map[string]any{"key": value}}
	}
	sops := map[string]any{"mac": value, "lastmodified": "2026-05-04T10:00:00Z"}
	intended := secret("stringData", value)
	intended["metadata"] = map[string]any{"annotations": map[string]any{CiphertextAnnotation: CiphertextApply}}
	for name, test := range map[string]struct {
		object map[string]any
		want   string
	}{
		"a value of SOPS":            {secret("stringData", value), "SOPS"},
		"one under data":             {secret("data", value), "SOPS"},
		"one that was encoded":       {secret("data", b64(value)), "SOPS"},
		"a file of SOPS":             {secret("data", b64("user: root\npassword: "+value+"\nsops:\n  mac: "+value+"\n")), "SOPS"},
		"a file of git-crypt":        {secret("data", b64("\x00GITCRYPT\x00abc")), "git-crypt"},
		"a file of Ansible Vault":    {secret("stringData", "$ANSIBLE_VAULT;1.1;AES256\n6638"), "Ansible Vault"},
		"a file of age":              {secret("stringData", "-----BEGIN AGE ENCRYPTED FILE-----\nYWdl"), "age"},
		"a binary file of age":       {secret("data", b64("age-encryption.org/v1\n-> X25519 a")), "age"},
		"a file of PGP":              {secret("stringData", "-----BEGIN PGP MESSAGE-----\n\nhQ"), "PGP"},
		"a whole object":             {map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "sops": sops}, "SOPS"},
		"a ConfigMap":                {map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": value}}, "SOPS"},
		"binary data of a ConfigMap": {map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "binaryData": map[string]any{"a": b64("\x00GITCRYPT\x00")}}, "git-crypt"},
		"what is meant to be":        {intended, ""},
		"a SopsSecret":               {map[string]any{"apiVersion": "isindir.github.com/v1alpha3", "kind": "SopsSecret", "sops": sops}, ""},
		"a SealedSecret":             {map[string]any{"apiVersion": "bitnami.com/v1alpha1", "kind": "SealedSecret", "spec": map[string]any{"encryptedData": map[string]any{"a": "AgBy"}}}, ""},
		"a public key":               {secret("stringData", "-----BEGIN PGP PUBLIC KEY BLOCK-----\n"), ""},
		"a certificate":              {secret("data", b64("-----BEGIN CERTIFICATE-----\n")), ""},
		"a field sops of one's own":  {map[string]any{"apiVersion": "example.com/v1", "kind": "Tool", "sops": map[string]any{"enabled": true}}, ""},
		"a plain value":              {secret("stringData", "hunter2"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if c := CiphertextIn(test.object); c != nil {
				got = c.Tool
			}
			if got != test.want {
				t.Errorf("encrypted with %q, want %q", got, test.want)
			}
		})
	}
}

// The entries that a generator makes from a file of variables name the recipients of SOPS, as a manifest does.
func TestVariablesOfSOPSNameTheirRecipients(t *testing.T) {
	entries := map[string]any{}
	for key, value := range map[string]string{
		"TOKEN": "ENC[AES256_GCM,data:9mF0Zg==,iv:aXY=,tag:dGFn,type:str]", "sops_mac": "ENC[AES256_GCM,data:a,iv:b,tag:c,type:str]",
		"sops_age__list_0__map_enc": "-----BEGIN AGE ENCRYPTED FILE-----\\nYWdl", "sops_age__list_0__map_recipient": "age1one",
		"sops_age__list_1__map_recipient": "age1two", "sops_pgp__list_0__map_fp": "ABCD",
	} {
		entries[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	const want = "it is encrypted with SOPS for age age1one, age age1two, pgp ABCD, and it cannot be decrypted"
	c := CiphertextIn(map[string]any{"apiVersion": "v1", "kind": "Secret", "data": entries})
	if c == nil || !strings.HasPrefix(c.Message(), want) {
		t.Errorf("got %+v, want %s", c, want)
	}
}
