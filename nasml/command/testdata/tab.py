"""Press Tab and Shift+Tab in a cell of JupyterLab: tab.py CHROMIUM URL SCREENSHOT.

It opens a notebook whose first cell ends in "p.Wi" on a line of its own and calls
notebook.Export, and prints as JSON what a reader gets: the cell after Tab, with what the
list offers, and the text of the tooltip. Until the language server has read the module
there is no answer, so that the keys are pressed again.
"""

import json
import sys
import time

from playwright.sync_api import TimeoutError, sync_playwright

CONNECTED = """() => window.jupyterapp?.shell.currentWidget?.context?.sessionContext
    ?.session?.kernel?.connectionStatus === 'connected'"""

# Puts the cursor so many characters behind the beginning of a word.
AIM = """([word, behind]) => {
    const cell = window.jupyterapp.shell.currentWidget.content.widgets[0]
    window.jupyterapp.shell.currentWidget.content.mode = 'edit'
    cell.editor.focus()
    const text = cell.model.sharedModel.getSource()
    cell.editor.setCursorPosition(cell.editor.getPositionAt(text.indexOf(word) + behind))
}"""

SOURCE = "() => window.jupyterapp.shell.currentWidget.content.widgets[0].model.sharedModel.getSource()"


def press(page, word, behind, key, answer, seconds):
    """Presses a key until there is an answer, and says how long the last one took."""
    end = time.monotonic() + seconds
    while True:
        page.evaluate(AIM, [word, behind])
        begin = time.monotonic()
        page.keyboard.press(key)
        try:
            return answer(), time.monotonic() - begin
        except TimeoutError:
            if time.monotonic() > end:
                raise
            page.keyboard.press("Escape")


def main(chromium, url, screenshot):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.goto(url)
        page.wait_for_function(CONNECTED, timeout=120_000)

        def tooltip():
            shown = page.locator(".jp-Tooltip")
            shown.wait_for(state="visible", timeout=5_000)
            return shown.inner_text()

        def completed():
            """The cell, in which JupyterLab puts what is the only answer at once."""
            page.wait_for_function(
                "() => (" + SOURCE + ")().includes('p.Widths') || document.querySelector('.jp-Completer:not(.lm-mod-hidden)')",
                timeout=5_000)
            offered = page.locator(".jp-Completer").all_inner_texts()
            return page.evaluate(SOURCE) + "\n".join(offered)

        try:
            doc, shift_tab = press(page, "Export", 2, "Shift+Tab", tooltip, 240)
            page.screenshot(path=screenshot)
            page.keyboard.press("Escape")
            cell, tab = press(page, "p.Wi", len("p.Wi"), "Tab", completed, 60)
        except TimeoutError:
            page.screenshot(path=screenshot)
            sys.exit("no answer, see " + screenshot)
        browser.close()
    print(json.dumps({"doc": doc, "shiftTab": shift_tab, "cell": cell, "tab": tab}))


main(*sys.argv[1:])
