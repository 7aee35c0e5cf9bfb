"""Look at the index in JupyterLab: index.py CHROMIUM INDEX NOTEBOOK SCREENSHOT.

It opens the index, waits for some of its pictures, and prints as JSON how wide each is on the screen, which rows
have "Figure 2" beside their picture, what the first link to the guide opens, and whether the index and the notebook
are unsaved after they were only opened.
"""

import json
import sys

from playwright.sync_api import sync_playwright

CONNECTED = """() => window.jupyterapp?.shell.currentWidget?.context?.sessionContext
    ?.session?.kernel?.connectionStatus === 'connected'"""

WIDTHS = """() => [...document.querySelectorAll('.jp-RenderedMarkdown td img')]
    .filter(i => i.naturalWidth > 100).map(i => i.getBoundingClientRect().width)"""

DIRTY = "() => window.jupyterapp.shell.currentWidget.context.model.dirty"

OPENED = """() => {
    const widget = window.jupyterapp.shell.currentWidget
    return {path: widget?.context?.path ?? '', rendered: !!widget?.node.querySelector('.jp-RenderedMarkdown h1')}
}"""


def main(chromium, index, url, screenshot):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.goto(index)
        page.wait_for_function("() => (" + WIDTHS + ")().length > 2", timeout=120_000)
        page.wait_for_timeout(3_000)
        page.screenshot(path=screenshot)
        seen = {"widths": page.evaluate(WIDTHS), "dirty": {"index": page.evaluate(DIRTY)}}
        page.locator('.jp-RenderedMarkdown a[href*="vary"]').first.click()
        page.wait_for_function("() => ((" + OPENED + ")().path || 'index').indexOf('index') < 0", timeout=60_000)
        page.wait_for_timeout(1_000)
        seen["guide"] = page.evaluate(OPENED)

        page.goto(url)
        page.wait_for_function(CONNECTED, timeout=120_000)
        page.wait_for_timeout(3_000)
        seen["dirty"]["notebook"] = page.evaluate(DIRTY)
        browser.close()
    print(json.dumps(seen))


main(*sys.argv[1:])
