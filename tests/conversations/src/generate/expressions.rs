//! Expressions in CEL, made of templates by type: what they say of an object is told by policies that warn.

use serde_json::{Value, json};

use super::draft::{Draft, configmap, configmaps, marker_policy, own_namespace, policy, selected};
use super::random::Random;

/// Expressions of one policy.
const VALIDATIONS: usize = 6;

/// A type: the letter that stands for one of its expressions in templates, how such an expression is shown as text (`@`
/// stands for it), what is written where templates would become too deep, and the templates.
struct Kind {
    letter: char,
    shown: &'static str,
    flat: &'static [&'static str],
    templates: &'static [&'static str],
}

const KINDS: [Kind; 18] = [
    Kind {
        letter: 'b',
        shown: "string(@)",
        flat: &[
            "true",
            "false",
            "has(object.data.a)",
            "has(object.data.x)",
            "oldObject == null",
        ],
        templates: &[
            "!$b",
            "($b && $b)",
            "($b || $b)",
            "($b ? $b : $b)",
            "$i < $i",
            "$d >= $d",
            "$i == $d",
            "$u < $u",
            "$t <= $t",
            "$s == $s",
            "$s < $s",
            "$s.contains($s)",
            "$s.startsWith($s)",
            "$s.endsWith($s)",
            "$s.matches('^a.*[0-9]?$')",
            "$s in $m",
            "$i in $l",
            "$s in $k",
            "$l == $l",
            "$m != $m",
            "$l.all(x, x > $i)",
            "$m.exists(x, x == $s)",
            "$l.exists_one(x, x == $i)",
            "$k.all(k, k != $s)",
            "$l.all(i, v, i <= v)",
            "$k.exists(k, v, v > 1)",
            "$k.existsOne(k, v, v > 1)",
            "$l.isSorted()",
            "$m.isSorted()",
            "sets.contains($l, $l)",
            "sets.equivalent($m, $m)",
            "sets.intersects($l, $l)",
            "$q.isGreaterThan($q)",
            "$q.isLessThan($q)",
            "isQuantity($s)",
            "$q.isInteger()",
            "isIP($s)",
            "ip.isCanonical($s)",
            "$p.isUnspecified()",
            "$p.isLoopback()",
            "$p.isLinkLocalUnicast()",
            "$p.isGlobalUnicast()",
            "$p.isLinkLocalMulticast()",
            "$p == $p",
            "isCIDR($s)",
            "$c.containsIP($p)",
            "$c.containsIP($s)",
            "$c.containsCIDR($c)",
            "$c.containsCIDR($s)",
            "$c == $c",
            "isURL($s)",
            "$w == $w",
            "isSemver($s)",
            "isSemver($s, true)",
            "$v.isGreaterThan($v)",
            "$v.isLessThan($v)",
            "$o.hasValue()",
            "$o == $o",
            "$f.hasValue()",
            "$y == $y",
            "bool($s)",
            "$n == $i",
            "$n == null",
            "type($n) == int",
            "type($i) == type($d)",
            "dyn($i) == dyn($d)",
            "has(object.metadata.$x)",
            "authorizer.group('').resource('pods').namespace('default').check('get').allowed()",
            "authorizer.path('/healthz').check('get').allowed()",
            "request.operation == $s",
            "quantity($s) == $q",
        ],
    },
    Kind {
        letter: 'i',
        shown: "string(@)",
        flat: &["0", "1", "-1", "42", "9223372036854775807", "size(object.data)", "5"],
        templates: &[
            "($i + $i)",
            "($i - $i)",
            "($i * $i)",
            "$i / $i",
            "$i % $i",
            "-($i)",
            "size($s)",
            "$m.size()",
            "size($k)",
            "size($y)",
            "int($d)",
            "int($s)",
            "int($t)",
            "int($h)",
            "($b ? $i : $i)",
            "$l[$i]",
            "$k[$s]",
            "$l.sum()",
            "$l.min()",
            "$l.max()",
            "$l.indexOf($i)",
            "$l.lastIndexOf($i)",
            "$s.indexOf($s)",
            "$s.indexOf($s, $i)",
            "$s.lastIndexOf($s)",
            "$q.asInteger()",
            "sign($q)",
            "$q.compareTo($q)",
            "$p.family()",
            "$c.prefixLength()",
            "$v.major()",
            "$v.minor()",
            "$v.patch()",
            "$v.compareTo($v)",
            "$t.getFullYear()",
            "$t.getMonth()",
            "$t.getDayOfWeek('+02:00')",
            "$t.getHours('Europe/Berlin')",
            "$u.getSeconds()",
            "$u.getMinutes()",
            "$u.getMilliseconds()",
            "$f.orValue($i)",
            "$f.value()",
            "$l.first().orValue($i)",
            "$l.last().value()",
            "$l.map(x, x * $i).sum()",
            "[$i, $i].max()",
            "$l.slice(0, 1).size()",
        ],
    },
    Kind {
        letter: 'h',
        shown: "string(@)",
        flat: &["0u", "7u", "18446744073709551615u"],
        templates: &[
            "uint($i)",
            "uint($d)",
            "uint($s)",
            "($h + $h)",
            "($h - $h)",
            "$h / $h",
            "$h % $h",
            "[$h, $h].sum()",
        ],
    },
    Kind {
        letter: 'd',
        shown: "string(@)",
        flat: &["0.0", "1.5", "-2.25", "1e10", "3.0"],
        templates: &[
            "double($i)",
            "double($s)",
            "($d + $d)",
            "($d * $d)",
            "$d / $d",
            "-($d)",
            "$q.asApproximateFloat()",
            "[$d, $d].min()",
            "[$d, $d].sum()",
            "($b ? $d : $d)",
        ],
    },
    Kind {
        letter: 's',
        shown: "@",
        flat: &[
            "'a'",
            "''",
            "'abc1'",
            "'Ünï'",
            "'1'",
            "'10.0.0.1'",
            "'a,b,c'",
            "object.metadata.name",
            "object.data.a",
            "object.data.x",
            "'fe80::1'",
            "'10.0.0.0/8'",
            "'1.2.3'",
            "'v1.2'",
            "'100m'",
            "'https://a.b:80/c?d=e'",
            "'CREATE'",
            "request.userInfo.username",
            "namespaceObject.metadata.labels['none']",
            "'true'",
            "'-5'",
        ],
        templates: &[
            "($s + $s)",
            "$s.charAt($i)",
            "$s.lowerAscii()",
            "$s.upperAscii()",
            "$s.trim()",
            "$s.replace($s, $s)",
            "$s.replace('a', $s, $i)",
            "$s.substring($i)",
            "$s.substring($i, $i)",
            "$m.join($s)",
            "$m.join()",
            "$m[$i]",
            "$s.find('[a-z]+')",
            "$s.find($s)",
            "string($i)",
            "string($d)",
            "string($b)",
            "string($h)",
            "string($u)",
            "string($t)",
            "string($y)",
            "string($p)",
            "string($c)",
            "$w.getScheme()",
            "$w.getHost()",
            "$w.getHostname()",
            "$w.getPort()",
            "$w.getEscapedPath()",
            "$o.orValue($s)",
            "$o.value()",
            "($b ? $s : $s)",
            "$m.max()",
            "'%s is %d and %.2f'.format([$s, $i, $d])",
            "'%s %s %s'.format([$l, $k, $b])",
            "'%x %o %b'.format([$i, $i, $i])",
            "'%e'.format([$d])",
            "'%s'.format([$u])",
            "'%s'.format([$t])",
            "'%5d|%X'.format([$i, $s])",
            "'%d'.format([$s])",
            "strings.quote($s)",
            "$g.validate($s).orValue([]).join(';')",
            "format.dns1123Label().validate($s).value()[0]",
            "$s.split($s)[0]",
            "$m.first().orValue($s)",
            "$e.join(' ')",
            "authorizer.path('/x').check('get').reason()",
            "authorizer.serviceAccount('default', 'default').group('apps').resource('deployments').check('get').error()",
        ],
    },
    Kind {
        letter: 'y',
        shown: "string(@)",
        flat: &["b'abc'", "b''", "b'\\377'"],
        templates: &["bytes($s)", "($y + $y)", "($b ? $y : $y)"],
    },
    Kind {
        letter: 'u',
        shown: "string(@)",
        flat: &[
            "duration('1h')",
            "duration('90s')",
            "duration('-1.5s')",
            "duration('100ms')",
        ],
        templates: &[
            "($u + $u)",
            "($u - $u)",
            "($t - $t)",
            "duration($s)",
            "[$u, $u].max()",
            "duration(string($u))",
        ],
    },
    Kind {
        letter: 't',
        shown: "string(@)",
        flat: &[
            "timestamp('2024-02-29T12:30:45Z')",
            "timestamp('1970-01-01T00:00:00.5+01:00')",
        ],
        templates: &["($t + $u)", "($t - $u)", "timestamp($s)", "timestamp($i)"],
    },
    Kind {
        letter: 'l',
        shown: "'%s'.format([@])",
        flat: &["[1, 2, 3]", "[]", "[3, 1, 2, 1]"],
        templates: &[
            "[$i, $i]",
            "($l + $l)",
            "$l.map(x, x + $i)",
            "$l.filter(x, x != $i)",
            "$l.map(x, x > 1, x * 2)",
            "$l.sort()",
            "$l.distinct()",
            "$l.reverse()",
            "$l.slice($i, $i)",
            "lists.range($i)",
            "$l.sortBy(x, -x)",
            "[$l, $l].flatten()",
            "$k.map(k, $k[k])",
            "$l.transformList(i, v, i + v)",
            "$l.transformList(i, v, i > 0, v)",
            "$k.transformList(k, v, v)",
            "[?$f, 1]",
        ],
    },
    Kind {
        letter: 'm',
        shown: "'%s'.format([@])",
        flat: &[
            "['a', 'b']",
            "['c', 'a', 'a']",
            "object.metadata.?finalizers.orValue([])",
        ],
        templates: &[
            "[$s, $s]",
            "$s.split($s)",
            "$s.split(',', $i)",
            "$s.findAll('[a-z]')",
            "$s.findAll('[0-9]', $i)",
            "$m.map(x, x + $s)",
            "$m.filter(x, x.size() > $i)",
            "$k.map(k, k)",
            "$m.sort()",
            "$m.distinct()",
            "$m.sortBy(x, x.size())",
            "$g.validate($s).orValue(['none'])",
            "[[$s], $m].flatten()",
        ],
    },
    Kind {
        letter: 'k',
        shown: "'%s'.format([@])",
        flat: &["{'a': 1, 'b': 2}", "{'x': 5}"],
        templates: &[
            "{$s: $i, 'z': $i}",
            "{'a': $i, ?'b': $f}",
            "($b ? $k : $k)",
            "$k.transformMap(k, v, v + 1)",
            "$k.transformMap(k, v, k != 'a', v)",
            "$k.transformMapEntry(k, v, {k + 'x': v})",
        ],
    },
    Kind {
        letter: 'q',
        shown: "string(@.asApproximateFloat())",
        flat: &[
            "quantity('1')",
            "quantity('500m')",
            "quantity('1Gi')",
            "quantity('-2k')",
        ],
        templates: &["quantity($s)", "$q.add($q)", "$q.sub($q)", "$q.add($i)", "$q.sub($i)"],
    },
    Kind {
        letter: 'p',
        shown: "string(@)",
        flat: &["ip('10.0.0.1')", "ip('::1')", "ip('fe80::1')", "ip('0.0.0.0')"],
        templates: &["ip($s)", "$c.ip()"],
    },
    Kind {
        letter: 'c',
        shown: "string(@)",
        flat: &["cidr('10.0.0.0/8')", "cidr('fe80::/10')", "cidr('10.1.2.3/24')"],
        templates: &["cidr($s)", "$c.masked()"],
    },
    Kind {
        letter: 'w',
        shown: "@.getHost()",
        flat: &[
            "url('https://example.com:8080/a%20b?x=1&x=2')",
            "url('/only/path')",
            "url('http://[::1]:80/')",
        ],
        templates: &["url($s)", "url('http://' + $s)"],
    },
    Kind {
        letter: 'v',
        shown: "string(@.minor())",
        flat: &["semver('1.2.3')", "semver('1.2.3-alpha.1')", "semver('2.0.0+build')"],
        templates: &["semver($s)", "semver($s, true)", "semver('v1.0', true)"],
    },
    Kind {
        letter: 'o',
        shown: "@.orValue('none')",
        flat: &[
            "optional.none()",
            "optional.of('a')",
            "object.data[?'a']",
            "object.data.?x",
            "object.?data.?a",
        ],
        templates: &[
            "optional.of($s)",
            "optional.ofNonZeroValue($s)",
            "$o.optMap(x, x + $s)",
            "$o.or($o)",
            "$m.first()",
            "$m[?$i]",
        ],
    },
    Kind {
        letter: 'f',
        shown: "string(@.orValue(-1))",
        flat: &["optional.of(1)", "optional.ofNonZeroValue(0)"],
        templates: &[
            "$k[?$s]",
            "$l[?$i]",
            "$l.last()",
            "$f.optMap(x, x + $i)",
            "$f.optFlatMap(x, optional.of(x))",
        ],
    },
];

/// Letters that stand for words.
const WORDS: [(char, &[&str]); 4] = [
    ('x', &["labels", "annotations", "generateName", "uid", "nothing"]),
    (
        'g',
        &[
            "format.dns1123Label()",
            "format.dns1123Subdomain()",
            "format.dns1035Label()",
            "format.qualifiedName()",
            "format.labelValue()",
            "format.uri()",
            "format.uuid()",
            "format.byte()",
            "format.date()",
            "format.datetime()",
            "format.dns1123LabelPrefix()",
            "format.named('uuid').value()",
            "format.named('none').value()",
        ],
    ),
    (
        'n',
        &[
            "object.data.a",
            "object.none",
            "object.metadata.labels.t",
            "dyn(1)",
            "dyn('x')",
            "object.immutable",
        ],
    ),
    (
        'e',
        &[
            "url('http://a/?b=1&b=2').getQuery()['b']",
            "'a b'.split(' ')",
            "object.metadata.labels.map(k, k)",
        ],
    ),
];

/// An expression of the type that the letter stands for.
pub fn expression(random: &mut Random, letter: char, depth: usize) -> String {
    if let Some((_, words)) = WORDS.iter().find(|(known, _)| *known == letter) {
        return random.pick(words).to_owned();
    }
    let kind = KINDS.iter().find(|kind| kind.letter == letter).unwrap_or(&KINDS[0]);
    if depth == 0 || random.once_in(5) {
        return random.pick(kind.flat).to_owned();
    }
    let mut made = String::new();
    let mut template = random.pick(kind.templates).chars();
    while let Some(character) = template.next() {
        match character {
            // A `$` before a quote is the end of a pattern.
            '$' => match template.next() {
                Some(letter) if letter.is_ascii_lowercase() => made += &expression(random, letter, depth - 1),
                other => made.extend(std::iter::once('$').chain(other)),
            },
            other => made.push(other),
        }
    }
    made
}

/// A case of policies of many expressions, and one object for each.
pub fn case(random: &mut Random, name: String, policies: usize) -> Value {
    let mut draft = Draft::new(name, "what expressions make of an object");
    for number in 0..policies {
        let label = format!("l{number}");
        let spec = json!({
            "failurePolicy": "Fail",
            "validations": (0..VALIDATIONS).map(|_| validation(random)).collect::<Vec<_>>(),
            "matchConstraints": {"resourceRules": configmaps(), "namespaceSelector": own_namespace(),
                "objectSelector": selected(Some(("t", &label)))},
        });
        policy(
            &mut draft,
            "validating",
            &format!("{{uniq}}-{number}"),
            spec,
            json!(["Warn"]),
        );
    }
    marker_policy(&mut draft);
    for number in 0..policies {
        let object = configmap(&format!("c{number}"), json!({"t": format!("l{number}")}));
        draft.ask(
            "POST",
            "/api/v1/namespaces/{ns}/configmaps?dryRun=All",
            object,
            &["metadata.name"],
        );
    }
    draft.value()
}

/// One that fails with the value of an expression as its message, or with what is wrong with it.
fn validation(random: &mut Random) -> Value {
    let letters: Vec<&Kind> = KINDS.iter().collect();
    let kind = random.pick(&letters);
    let depth = 1 + random.below(3);
    let made = expression(random, kind.letter, depth);
    let shown = kind.shown.replace('@', &made);
    json!({"expression": format!("[{made}].size() == 0"), "messageExpression": format!("'v: ' + {shown}")})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_filled_in() {
        let mut random = Random::new(7, 0);
        for kind in &KINDS {
            for _ in 0..200 {
                let made = expression(&mut random, kind.letter, 3);
                let left = made.replace("]?$'", "");
                assert!(!left.contains('$') && !made.is_empty(), "{made}");
            }
        }
    }
}
