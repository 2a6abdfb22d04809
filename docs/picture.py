"""Takes a picture of a part of a page: picture.py PAGE SELECTOR light|dark FILE.png"""

import pathlib
import sys

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

WIDTH, HEIGHT = 1000, 640


def main(page, selector, scheme, picture):
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"]:
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    try:
        metrics = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        driver.get(pathlib.Path(page).resolve().as_uri())
        if selector == "body":
            driver.save_screenshot(picture)
        else:
            # A window in which all of it is seen: a picture of an element is of what the window shows.
            height = driver.execute_script("return document.documentElement.scrollHeight")
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics | {"height": height})
            driver.find_element(By.CSS_SELECTOR, selector).screenshot(picture)
    finally:
        driver.quit()


if __name__ == "__main__":
    main(*sys.argv[1:])
