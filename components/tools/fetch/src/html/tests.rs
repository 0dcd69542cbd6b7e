use std::time::{Duration, Instant};

use super::*;

fn page(html: &str, style: Style) -> Page {
    read(html, &Url::parse("https://example.org/a/b").unwrap(), style)
}

#[track_caller]
fn is(html: &str, plain: &str, markdown: &str) {
    assert_eq!(page(html, Style::Plain).text, plain, "{html}");
    assert_eq!(page(html, Style::Markdown).text, markdown, "{html}");
}

#[test]
fn text_is_laid_out() {
    is("", "", "");
    is("a\n  b&amp;c\u{A0}d", "a b&c d", "a b&c d");
    is("<p>a<p>b<div>c</div>d<br>e<br><br>f", "a\n\nb\nc\nd\ne\n\nf", "a\n\nb\nc\nd\ne\n\nf");
    is("<h1>Big </h1><h3></h3>text<hr>more", "Big\n\ntext\n\nmore", "# Big\n\ntext\n\n---\n\nmore");
    is("a <b>bold </b>c<i> it</i><em></em>", "a bold c it", "a **bold** c *it*");
    is("<b><p>a</p><p>b</p></b>c", "a\n\nb\n\nc", "a\n\nb\n\nc");
    is("<blockquote>a<p>b<ul><li>c</ul></blockquote>d", "> a\n\n> b\n\n> - c\n\nd", "> a\n\n> b\n\n> - c\n\nd");
    is("so\u{AD}ft\u{200B} \u{7}x", "soft x", "soft x");
}

#[test]
fn lists_are_indented() {
    let list = "<ul><li>a<li><p>b</p><p>c</p><ol start=9><li>d</li><li>e</ol></li><li></li><li>f</ul>g";
    is(list, "- a\n- b\n\n  c\n\n  9. d\n  10. e\n- f\n\ng", "- a\n- b\n\n  c\n\n  9. d\n  10. e\n- f\n\ng");
    is("<li>a</ul></ol><li>b", "- a\n\n- b", "- a\n\n- b");
}

#[test]
fn code_stays_as_it_is() {
    is("<pre>\n a *b*\n\n\tc <b>d</b>\n</pre>e", "a *b*\n\n\tc d\n\ne", "```\n a *b*\n\n\tc d\n```\n\ne");
    is("<pre><code>```</code></pre>", "```", "````\n```\n````");
    is("<ul><li>x<pre>a\nb</pre></ul>", "- x\n\n  a\n  b", "- x\n\n  ```\n  a\n  b\n  ```");
    is("use <code>a_*b*</code> or <code>`</code>", "use a_*b* or `", "use `a_*b*` or `` ` ``");
}

#[test]
fn links_are_whole_urls() {
    is("<a href='../x?y=(z)'>the <b>x</b></a>", "the x", "[the **x**](https://example.org/x?y=%28z%29)");
    is("<a href=c><div>a</div><div>b</div></a>", "a\nb", "a\nb (<https://example.org/a/c>)");
    is("<base href=//other.example/d/><a href=e>f</a>", "f", "[f](https://other.example/d/e)");
    is("<a href=1>a<a href=2>b", "ab", "[a](https://example.org/a/1)b");
    is("<img alt=' A [cat]' src=c.png><img src=d.png>", "", "![A \\[cat\\]](https://example.org/a/c.png)");
    for nowhere in ["javascript:alert(1)", "data:text/html,x", "#top", "http://[", "", &"a".repeat(TARGET + 1)] {
        let markdown = page(&format!("<a href=\"{nowhere}\">a</a>"), Style::Markdown).text;
        assert!(markdown == "a" || nowhere.is_empty(), "{nowhere}: {markdown}");
    }
}

#[test]
fn text_is_no_markdown() {
    is("&lt;script> [a](b) *c* _d_ e_f `g` \\", "<script> [a](b) *c* _d_ e_f `g` \\", {
        "\\<script> \\[a\\](b) \\*c\\* \\_d\\_ e_f \\`g\\` \\\\"
    });
    is("<p># a<p>- b<p>c - d", "# a\n\n- b\n\nc - d", "\\# a\n\n\\- b\n\nc - d");
}

#[test]
fn tables_are_tables_if_they_have_headings() {
    let headed = "<table><tr><th>a<th>b|<tr><td><p>1</p><td></td></tr></table>c";
    is(headed, "a | b|\n1\n\nc", "| a | b\\| |\n| --- | --- |\n| 1 |  |\n\nc");
    let placed = "<table><tr><td></td><td>a</td><td><table><tr><td>b<td>c</table></td></tr><tr><td>d</table>";
    is(placed, "a | b | c\nd", "a | b | c\nd");
}

#[test]
fn what_is_no_text_is_left_out() {
    is("a<script>if (1 < 2) { '</b>' }</script><style>b</style><noscript>c</noscript>d<!-- e -->", "ad", "ad");
    is("a<svg><title/><style/><text>b</text></svg>c", "a\n\nc", "a\n\nc");
    is("<nav><ul><li>a</ul></nav><p>b<nav>c<nav>d</nav></nav>e", "b\n\ne", "b\n\ne");
    is("a<div hidden>b</div><p style='x; Display : none'>c</p><p aria-hidden=true>d</p>e", "a\n\ne", "a\n\ne");
    // What nothing closes is no reason to lose the rest, nor is a page of links alone.
    is("<nav>a<p>b", "a\n\nb", "a\n\nb");
    is("<nav>a</nav>", "a", "a");
}

#[test]
fn a_main_part_is_all_if_it_is_long_enough() {
    let long = "word ".repeat(60);
    let long = long.trim();
    is(&format!("<h1>a</h1><main>{long}</main>c"), long, long);
    is(&format!("a<div role=main><div>b</div>{long}</div>c"), &format!("b\n{long}"), &format!("b\n{long}"));
    is("a<main>b</main>c", "a\n\nb\n\nc", "a\n\nb\n\nc");
}

#[test]
fn a_title_is_one_line() {
    let title = |html: &str| page(html, Style::Plain).title;
    assert_eq!(title("<title> A\n&lt;b> </title>c<svg><title>d</title></svg>").as_deref(), Some("A <b>"));
    assert_eq!(title("<title></title>"), None);
    assert_eq!(title("a"), None);
    assert_eq!(title(&format!("<title>{}", "ü".repeat(5000))).unwrap().chars().count(), TITLE);
}

#[test]
fn hostile_pages_take_time_by_their_bytes_only() {
    let many = 100_000;
    let attributes: String = (0..many).map(|n| format!("a{n}={n} ")).collect();
    let pages = [
        "<div>".repeat(many),
        "<b>".repeat(many),
        "<p><b><i><code><a href=x>y".repeat(many),
        "<a href=x>y<p>".repeat(many),
        "<table><tr><td>".repeat(many),
        "<table><tr><th>a".repeat(many),
        "<ul><li>".repeat(many) + "x",
        "<blockquote>x".repeat(many),
        "<nav>x".repeat(many) + &"</nav>".repeat(many),
        "<main>x".repeat(many),
        "<pre>`</pre>".repeat(many),
        "<pre>x\n".repeat(many),
        "<b>x<i>y</b>z</i>".repeat(many),
        format!("<p {attributes}>x"),
        format!("<a href=\"{}\">x</a>", "/..".repeat(many)),
        "</ul></table></nav></pre></a></blockquote>".repeat(many / 8),
        "<svg><title>".repeat(many),
        "&".repeat(many) + &"<".repeat(many),
        "<!--".repeat(many),
        "<h1><li>".repeat(many),
    ];
    for html in &pages {
        for style in [Style::Plain, Style::Markdown] {
            let begun = Instant::now();
            let text = page(html, style).text;
            let start = &html[..html.len().min(40)];
            assert!(begun.elapsed() < Duration::from_secs(5), "{start} takes {:?}", begun.elapsed());
            assert!(text.len() <= LONGEST + (1 << 10), "{start} becomes {} bytes", text.len());
        }
    }
}
